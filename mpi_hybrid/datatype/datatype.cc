#include "mpi_hybrid/datatype/datatype.h"

#include <algorithm>
#include <array>
#include <memory>

#include "mpi_hybrid/core/handle.h"
#include "mpi_hybrid/datatype/layout.h"
#include "mpi_hybrid/datatype/predefined.h"

namespace weft::mpi {
namespace {

constexpr uint32_t kFirstDerived = 5;  // MPI_FLOAT_INT to MPI_LONG_DOUBLE_INT come before

HandleTable<Datatype>& DerivedTypes() {
  static auto& table = *new HandleTable<Datatype>(HandleKind::kDatatype, kFirstDerived);
  return table;
}

void Fill(Datatype& type, const Basic& basic) {
  type.handle = basic.handle;
  type.builtin = type.committed = true;
  type.size = basic.size;
  type.extent = type.true_extent = basic.extent;
  type.alignment = basic.alignment;
  type.name = basic.name;
  type.dense = basic.size == basic.extent;
  if (basic.size == 0) return;
  LayoutBuilder layout;
  if (basic.kind == BasicKind::kPair && basic.size != basic.extent) {
    const Run value{0, FindBasic(basic.first)->size};
    const Run index{basic.second_offset, FindBasic(basic.second)->size};
    layout.Append({&value, 1}, 0);
    layout.Append({&index, 1}, 0);
    type.true_extent = index.offset + index.length;
  } else {
    const Run run{0, basic.size};
    layout.Append({&run, 1}, 0);
  }
  type.layout = layout.Take();
  type.pieces = CountPieces(type.layout);
  type.signature = {{basic.handle, 1}};
}

// The objects of the predefined types, in the order of AllBasics(); never deleted.
Datatype* PredefinedType(const Basic& basic) {
  static Datatype* const types = [] {
    auto* made = new Datatype[AllBasics().size()];
    for (size_t i = 0; i < AllBasics().size(); ++i) {
      made[i].AddRef();
      Fill(made[i], AllBasics()[i]);
    }
    return made;
  }();
  return &types[&basic - AllBasics().data()];
}

}  // namespace

Datatype* Datatype::FindWithMarkers(MPI_Datatype handle) {
  if (const Basic* basic = FindBasic(handle)) return PredefinedType(*basic);
  if (!IsMade(handle) || HandleIndex(handle) < kFirstDerived) return nullptr;
  Datatype* type = DerivedTypes().Find(handle);
  return type != nullptr && type->users > 0 ? type : nullptr;
}

Datatype* Datatype::FindAny(MPI_Datatype handle) {
  Datatype* const type = handle == MPI_LB || handle == MPI_UB ? nullptr : FindWithMarkers(handle);
  if (type != nullptr && type->builtin) found_[handle & kMostFound].store(type, std::memory_order_release);
  return type;
}

MPI_Datatype Datatype::Give(Datatype& type) {
  if (FindBasic(type.handle) != nullptr) return type.handle;
  if (type.handle == MPI_DATATYPE_NULL) type.handle = DerivedTypes().Add(&type);
  if (type.users++ == 0) type.AddRef();
  return type.handle;
}

void Datatype::TakeBack(Datatype& type) {
  if (--type.users == 0) type.Release();
}

// The handle lives as long as the type, so that a user's operation gets a valid one although the type was freed meanwhile.
Datatype::~Datatype() {
  if (!builtin && handle != MPI_DATATYPE_NULL) DerivedTypes().Remove(handle);
}

void MemorySpan(MPI_Aint count, const Datatype& type, MPI_Aint* low, MPI_Aint* high) {
  *low = *high = 0;
  if (count == 0 || type.size == 0) return;
  const MPI_Aint last = (count - 1) * type.extent;
  *low = type.true_lb + std::min<MPI_Aint>(0, last);
  *high = type.true_lb + type.true_extent + std::max<MPI_Aint>(0, last);
}

}  // namespace weft::mpi
