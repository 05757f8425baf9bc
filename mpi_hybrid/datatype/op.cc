#include "mpi_hybrid/datatype/op.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <iterator>
#include <string>

#include "base/check.h"
#include "mpi_hybrid/core/handle.h"
#include "mpi_hybrid/datatype/op_kernels.h"
#include "mpi_hybrid/datatype/predefined.h"

namespace weft::mpi {
namespace {

constexpr const char* kNames[] = {"",         "MPI_MAX",    "MPI_MIN",    "MPI_SUM",     "MPI_PROD",
                                  "MPI_LAND", "MPI_BAND",   "MPI_LOR",    "MPI_BOR",     "MPI_LXOR",
                                  "MPI_BXOR", "MPI_MINLOC", "MPI_MAXLOC", "MPI_REPLACE", "MPI_NO_OP"};

HandleTable<Op>& MadeOps() {
  static auto& table = *new HandleTable<Op>(HandleKind::kOp);
  return table;
}

Op* PredefinedOp(size_t index) {
  static Op* const ops = [] {
    auto* made = new Op[std::size(kNames)];
    for (size_t i = 0; i < std::size(kNames); ++i) {
      made[i].AddRef();
      made[i].handle = static_cast<MPI_Op>(0x58000000u + i);
      made[i].builtin = true;
    }
    return made;
  }();
  return &ops[index];
}

bool IsPredefined(MPI_Op handle) { return handle >= MPI_MAX && handle <= MPI_NO_OP; }

bool IsAligned(const void* in, const void* inout, size_t alignment) {
  return ((reinterpret_cast<uintptr_t>(in) | reinterpret_cast<uintptr_t>(inout)) & (alignment - 1)) == 0;
}

// Packed elements to elements one extent apart, and back; what is between the data is left alone.
void Spread(const Basic& basic, const uint8_t* packed, uint8_t* memory, MPI_Aint count) {
  if (basic.size == basic.extent) {
    std::memcpy(memory, packed, static_cast<size_t>(count * basic.size));
    return;
  }
  const size_t first = FindBasic(basic.first)->size, second = FindBasic(basic.second)->size;
  for (MPI_Aint i = 0; i < count; ++i, packed += basic.size, memory += basic.extent) {
    std::memcpy(memory, packed, first);
    std::memcpy(memory + basic.second_offset, packed + first, second);
  }
}

void Gather(const Basic& basic, const uint8_t* memory, uint8_t* packed, MPI_Aint count) {
  const size_t first = FindBasic(basic.first)->size, second = FindBasic(basic.second)->size;
  for (MPI_Aint i = 0; i < count; ++i, packed += basic.size, memory += basic.extent) {
    std::memcpy(packed, memory, first);
    std::memcpy(packed + first, memory + basic.second_offset, second);
  }
}

// Through aligned copies on the stack.
void ApplyCopied(Kernel kernel, const Basic& basic, const uint8_t* in, bool in_is_packed, uint8_t* inout, MPI_Aint count) {
  alignas(64) uint8_t a[2048], b[2048], packed[2048];
  const MPI_Aint in_size = in_is_packed ? basic.size : basic.extent;
  while (count > 0) {
    const MPI_Aint part = std::min<MPI_Aint>(count, static_cast<MPI_Aint>(sizeof a) / basic.extent);
    const size_t bytes = static_cast<size_t>(part * basic.extent);
    if (in_is_packed) {
      Spread(basic, in, a, part);
    } else {
      std::memcpy(a, in, bytes);
    }
    std::memcpy(b, inout, bytes);
    kernel(a, b, part);
    if (basic.size == basic.extent) {
      std::memcpy(inout, b, bytes);
    } else {
      Gather(basic, b, packed, part);
      Spread(basic, packed, inout, part);
    }
    in += part * in_size;
    inout += bytes;
    count -= part;
  }
}

// The program may have freed the type while the reduction was under way; the handle that its function gets is valid nevertheless.
class UsableHandle {
 public:
  explicit UsableHandle(const Datatype& type) : type_(type) { ++type_.users; }
  ~UsableHandle() { --type_.users; }
  UsableHandle(const UsableHandle&) = delete;
  UsableHandle& operator=(const UsableHandle&) = delete;

 private:
  const Datatype& type_;
};

// Functions whose count is an int get long arrays in parts.
void CallUser(const Op& op, const uint8_t* in, uint8_t* inout, MPI_Aint count, const Datatype& type) {
  const UsableHandle usable(type);
  MPI_Datatype handle = type.handle;
  if (op.function_c != nullptr) {
    MPI_Count all = count;
    op.function_c(const_cast<uint8_t*>(in), inout, &all, &handle);
    return;
  }
  while (count > 0) {
    int part = static_cast<int>(std::min<MPI_Aint>(count, INT_MAX));
    const MPI_Aint advance = part * type.extent;
    count -= part;
    if (op.language == Op::Language::kCxx) {
      op.cxx_proxy(in, inout, part, handle, op.function);
    } else {  // Fortran's INTEGER is C's int
      op.function(const_cast<uint8_t*>(in), inout, &part, &handle);
    }
    if (count == 0) break;  // pointers may be relative to MPI_BOTTOM or to a type with a negative extent
    in += advance;
    inout += advance;
  }
}

}  // namespace

Op* Op::Find(MPI_Op handle) {
  return IsPredefined(handle) ? PredefinedOp(HandleIndex(handle)) : MadeOps().Find(handle);
}

MPI_Op Op::Give(Op& op) {
  WEFT_CHECK(!op.builtin && op.handle == MPI_OP_NULL);
  op.AddRef();
  return op.handle = MadeOps().Add(&op);
}

void Op::TakeBack(Op& op) {
  MadeOps().Remove(op.handle);
  op.handle = MPI_OP_NULL;
  op.Release();
}

const char* Op::Name() const { return builtin ? kNames[HandleIndex(handle)] : "an operation of the program"; }

Error Op::Accepts(const Datatype& type) const {
  if (!builtin || (type.builtin && FindKernel(handle, type.OnlyBasic()) != nullptr)) [[likely]] return {};
  const std::string name = Name();
  const std::string type_name = type.name.empty() ? "a derived datatype" : type.name;
  if (handle == MPI_REPLACE || handle == MPI_NO_OP) {
    return Error(MPI_ERR_OP, name + " is for one-sided communication only");
  }
  return Error(MPI_ERR_OP, name + " is not defined for " + type_name);
}

void Op::Apply(const void* in, void* inout, MPI_Aint count, const Datatype& type) const {
  if (count == 0) return;
  auto* from = static_cast<const uint8_t*>(in);
  auto* to = static_cast<uint8_t*>(inout);
  if (!builtin) return CallUser(*this, from, to, count, type);
  const Kernel kernel = FindKernel(handle, type.OnlyBasic());
  WEFT_CHECK(kernel != nullptr);
  const Basic& basic = *FindBasic(type.OnlyBasic());
  if (IsAligned(in, inout, basic.alignment)) [[likely]] {
    kernel(in, inout, count);
  } else {
    ApplyCopied(kernel, basic, from, false, to, count);
  }
}

bool Op::IsDefined(MPI_Op op, MPI_Datatype basic) {
  if (op == MPI_REPLACE || op == MPI_NO_OP) return FindBasic(basic) != nullptr;
  return FindKernel(op, basic) != nullptr;
}

void Op::ApplyBasic(MPI_Op op, MPI_Datatype basic_handle, const void* in, void* inout, MPI_Aint count) {
  if (op == MPI_NO_OP || count == 0) return;
  const Basic& basic = *FindBasic(basic_handle);
  auto* from = static_cast<const uint8_t*>(in);
  auto* to = static_cast<uint8_t*>(inout);
  if (op == MPI_REPLACE) return Spread(basic, from, to, count);
  const Kernel kernel = FindKernel(op, basic_handle);
  WEFT_CHECK(kernel != nullptr);
  if (basic.size == basic.extent && IsAligned(in, inout, basic.alignment)) {
    kernel(in, inout, count);
  } else {
    ApplyCopied(kernel, basic, from, true, to, count);
  }
}

}  // namespace weft::mpi
