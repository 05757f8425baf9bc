#include "mpi_hybrid/io/representation.h"

#include <climits>
#include <map>
#include <memory>

#include "mpi_hybrid/core/error_handler.h"
#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/datatype/external32.h"
#include "mpi_hybrid/datatype/predefined.h"
#include "mpi_hybrid/datatype/signature.h"
#include "mpi_hybrid/io/file_type.h"

namespace weft::mpi::io {
namespace {

class Native final : public Representation {
 public:
  explicit Native(const char* its_name) : Representation(its_name) {}

  Error FileType(const Datatype& type, Ref<const Datatype>* made) const override {
    *made = Ref<const Datatype>(&type);
    return {};
  }
  Error FileBytes(MPI_Count count, const Datatype& type, MPI_Count* bytes) const override {
    *bytes = count * type.size;
    return {};
  }
  Error ToFile(const void*, MPI_Count, const Datatype&, uint8_t*) const override { return {}; }
  Error FromFile(uint8_t*, MPI_Count, void*, MPI_Count, const Datatype&, MPI_Count*) const override { return {}; }
};

Error NotPortable(MPI_Datatype basic) {
  const Basic* known = FindBasic(basic);
  return Error(MPI_ERR_UNSUPPORTED_DATAREP, std::string(known != nullptr ? known->name : "the datatype") + " has no form in external32");
}

class External32 final : public Representation {
 public:
  External32() : Representation("external32") {}

  bool as_in_memory() const override { return false; }

  Error FileType(const Datatype& type, Ref<const Datatype>* made) const override {
    bool same = true;
    for (const SignaturePart& part : type.signature) {
      if (part.body > 0) continue;
      const Basic* basic = FindBasic(part.basic);
      if (basic->external == 0) return NotPortable(part.basic);
      same = same && basic->external == basic->extent;
    }
    if (same) {
      *made = Ref<const Datatype>(&type);
      return {};
    }
    return MakeFileType(
        type,
        [](MPI_Datatype handle, MPI_Aint* bytes) -> Error {
          const Basic* basic = FindBasic(handle);
          if (basic == nullptr || basic->external == 0) return NotPortable(handle);
          *bytes = basic->external;
          return {};
        },
        made);
  }
  Error FileBytes(MPI_Count count, const Datatype& type, MPI_Count* bytes) const override {
    for (const SignaturePart& part : type.signature) {
      if (part.body == 0 && FindBasic(part.basic)->external == 0) return NotPortable(part.basic);
    }
    *bytes = ExternalSize(count, type);
    return {};
  }
  Error ToFile(const void* buffer, MPI_Count count, const Datatype& type, uint8_t* out) const override {
    PackExternal(buffer, count, type, out);
    return {};
  }
  Error FromFile(uint8_t* in, MPI_Count bytes, void* buffer, MPI_Count count, const Datatype& type, MPI_Count* data) const override {
    *data = UnpackExternalBytes({in, static_cast<size_t>(bytes)}, buffer, count, type);
    return {};
  }
};

// The program's functions work on contiguous memory, in elements of its own type.
class Registered final : public Representation {
 public:
  Registered(const std::string& its_name, const DatarepFunctions& functions) : Representation(its_name), functions_(functions) {}

  bool as_in_memory() const override { return false; }

  Error FileType(const Datatype& type, Ref<const Datatype>* made) const override {
    return MakeFileType(type, [this](MPI_Datatype basic, MPI_Aint* bytes) { return Extent(basic, bytes); }, made);
  }
  Error FileBytes(MPI_Count count, const Datatype& type, MPI_Count* bytes) const override {
    MPI_Count each = 0;
    for (SignatureCursor at(type, 1); !at.done(); at.Advance(at.left())) {
      MPI_Aint one = 0;
      WEFT_MPI_TRY(Extent(at.basic(), &one));
      MPI_Count all;
      if (__builtin_mul_overflow(at.left(), one, &all) || __builtin_add_overflow(each, all, &each)) return TooLarge(count);
    }
    return __builtin_mul_overflow(count, each, bytes) ? TooLarge(count) : Error();
  }
  Error ToFile(const void* buffer, MPI_Count count, const Datatype& type, uint8_t* out) const override {
    return Convert(functions_.write, functions_.write_c, const_cast<void*>(buffer), count, type, out, "write");
  }
  Error FromFile(uint8_t* in, MPI_Count bytes, void* buffer, MPI_Count count, const Datatype& type, MPI_Count* data) const override {
    MPI_Count each = 0;
    WEFT_MPI_TRY(FileBytes(1, type, &each));
    const MPI_Count whole = each > 0 ? bytes / each : count;
    *data = whole * type.size;
    return whole > 0 ? Convert(functions_.read, functions_.read_c, buffer, whole, type, in, "read") : Error();
  }

 private:
  Error TooLarge(MPI_Count count) const {
    return Error(MPI_ERR_COUNT, std::to_string(count) + " elements are more in data representation " + name + " than a file can have");
  }

  // Without a conversion function elements are as in memory.
  bool is_plain(bool write) const {
    return write ? functions_.write == nullptr && functions_.write_c == nullptr : functions_.read == nullptr && functions_.read_c == nullptr;
  }

  Error Extent(MPI_Datatype basic, MPI_Aint* bytes) const {
    const int code = functions_.extent(basic, bytes, functions_.extra_state);
    if (code != MPI_SUCCESS) return Failed(code, "extent");
    if (*bytes >= 0) return {};
    return Error(MPI_ERR_CONVERSION, "the extent function of data representation " + name + " gave " + std::to_string(*bytes));
  }

  Error Convert(MPI_Datarep_conversion_function* small, MPI_Datarep_conversion_function_c* large, void* buffer, MPI_Count count,
                const Datatype& type, void* file, const char* what) const {
    if (is_plain(what[0] == 'w')) {
      TypeCursor cursor(buffer, count, type);
      const std::span<uint8_t> bytes(static_cast<uint8_t*>(file), static_cast<size_t>(cursor.remaining()));
      if (what[0] == 'w') {
        Pack(cursor, bytes);
      } else {
        Unpack(cursor, bytes);
      }
      return {};
    }
    if (large == nullptr && count > INT_MAX) {
      return Error(MPI_ERR_CONVERSION, std::to_string(count) + " elements are more than the conversion function of " + name +
                                           " takes: register one with MPI_Register_datarep_c");
    }
    const int code = large != nullptr ? large(buffer, type.handle, count, file, 0, functions_.extra_state)
                                      : small(buffer, type.handle, static_cast<int>(count), file, 0, functions_.extra_state);
    return code == MPI_SUCCESS ? Error() : Failed(code, what);
  }

  Error Failed(int code, const char* what) const {
    return Error(MPI_ERR_CONVERSION, std::string("the ") + what + " function of data representation " + name + " returned " +
                                         std::to_string(code));
  }

  const DatarepFunctions functions_;
};

using Table = std::map<std::string, std::unique_ptr<Representation>>;

Table& Representations() {
  static auto* table = [] {
    auto* made = new Table;  // outlives the program's exit handlers
    made->emplace("native", new Native("native"));
    made->emplace("internal", new Native("internal"));
    made->emplace("external32", new External32);
    return made;
  }();
  return *table;
}

}  // namespace

const Representation* FindRepresentation(const std::string& name) {
  const auto found = Representations().find(name);
  return found != Representations().end() ? found->second.get() : nullptr;
}

Error RegisterRepresentation(const std::string& name, const DatarepFunctions& functions) {
  if (Representations().count(name) > 0) return Error(MPI_ERR_DUP_DATAREP, "data representation " + name + " is defined already");
  Representations().emplace(name, new Registered(name, functions));
  return {};
}

}  // namespace weft::mpi::io
