#include "mpi_hybrid/io/file.h"

#include <algorithm>
#include <string>
#include <vector>

#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/io/agreement.h"
#include "mpi_hybrid/io/background.h"
#include "mpi_hybrid/io/io_error.h"

namespace weft::mpi::io {
namespace {

// Open files by their number for Fortran; a null one's number is free.
std::vector<File*>& Table() {
  static auto* table = new std::vector<File*>(1);  // outlives the program's exit handlers
  return *table;
}

// What only rank 0 does to the file, for all.
template <typename Do>
Error DoAtFirst(File& file, const Error& refusal, const Do& work) {
  WEFT_MPI_TRY(Agree(*file.comm, refusal));
  const Error done = file.comm->rank == 0 ? work() : Error();
  return Agree(*file.comm, done);
}

// MPI_ERR_NOT_SAME where the ranks gave different values; collective.
Error CheckSameValue(File& file, int64_t value, const char* what) {
  int64_t of_first = value;
  WEFT_MPI_TRY(TellBytes(*file.comm, 0, &of_first, sizeof of_first));
  Error error;
  if (of_first != value) {
    error = Error(MPI_ERR_NOT_SAME, file.name + ": " + what + " " + std::to_string(value) + " differs from that of rank 0, " + std::to_string(of_first));
  }
  return Agree(*file.comm, error);
}

}  // namespace

File::File() {
  std::vector<File*>& table = Table();
  const auto free = std::find(table.begin() + 1, table.end(), nullptr);
  if (free == table.end()) {
    table.push_back(this);
  } else {
    *free = this;
  }
}

File::~File() { *std::find(Table().begin(), Table().end(), this) = nullptr; }

File* File::Find(MPI_File handle) {
  if (handle == MPI_FILE_NULL) return nullptr;
  const auto found = std::find(Table().begin(), Table().end(), reinterpret_cast<File*>(handle));
  return found != Table().end() && (*found)->comm ? *found : nullptr;
}

MPI_Fint File::Number(MPI_File handle) {
  const auto found = std::find(Table().begin(), Table().end(), reinterpret_cast<File*>(handle));
  return found != Table().end() ? static_cast<MPI_Fint>(found - Table().begin()) : 0;
}

MPI_File File::Numbered(MPI_Fint number) {
  if (number <= 0 || static_cast<size_t>(number) >= Table().size()) return MPI_FILE_NULL;
  return reinterpret_cast<MPI_File>(Table()[static_cast<size_t>(number)]);
}

Error GetSize(File& file, int64_t* bytes) {
  const int error = Unlocked([&] { return file.raw->Size(bytes); });
  return error == 0 ? Error() : FileError(error, file.name, "get its size");
}

Error SetSize(File& file, int64_t bytes, const Error& refusal) {
  AwaitTogether(file);
  WEFT_MPI_TRY(Agree(*file.comm, refusal));
  WEFT_MPI_TRY(CheckSameValue(file, bytes, "size"));
  return DoAtFirst(file, {}, [&] {
    const int error = Unlocked([&] { return file.raw->Resize(bytes); });
    return error == 0 ? Error() : FileError(error, file.name, "make it " + std::to_string(bytes) + " bytes long");
  });
}

Error Preallocate(File& file, int64_t bytes, const Error& refusal) {
  AwaitTogether(file);
  WEFT_MPI_TRY(Agree(*file.comm, refusal));
  WEFT_MPI_TRY(CheckSameValue(file, bytes, "size"));
  return DoAtFirst(file, {}, [&] {
    const int error = Unlocked([&] { return file.raw->Reserve(bytes); });
    return error == 0 ? Error() : FileError(error, file.name, "reserve " + std::to_string(bytes) + " bytes");
  });
}

Error Sync(File& file) {
  AwaitTogether(file);
  Error error;
  if (file.may_write()) {
    const int failed = Unlocked([&] { return file.raw->Sync(); });
    if (failed != 0) error = FileError(failed, file.name, "write it to the device");
  }
  return Agree(*file.comm, error);
}

Error SetAtomicity(File& file, bool atomic) {
  AwaitTogether(file);
  WEFT_MPI_TRY(CheckSameValue(file, atomic, "flag"));
  file.atomic = atomic;
  return {};
}

Error SetInfo(File& file, const Info* info, const Error& refusal) {
  AwaitTogether(file);
  WEFT_MPI_TRY(Agree(*file.comm, refusal));
  Hints hints = file.hints;
  if (info != nullptr) hints.Take(*info);
  WEFT_MPI_TRY(TellBytes(*file.comm, 0, &hints, sizeof hints));
  hints.Clamp();
  if (hints.access != file.hints.access) Unlocked([&] { file.raw->Expect(hints.access == Hints::Access::kRandom); });
  file.hints = hints;
  return {};
}

void TellInfo(const File& file, Info* info) {
  const int64_t asked = file.hints.cb_nodes;
  int count = asked > 0 ? static_cast<int>(std::min<int64_t>(asked, file.comm->size())) : 0;
  if (count == 0 && (ThisJob().one_host || file.comm->size() == 1)) count = 1;
  if (file.aggregators) count = file.aggregators->count();
  Hints in_force = file.hints;
  if (!file.may_read() && in_force.ds_write == Hints::Choice::kEnable) in_force.ds_write = Hints::Choice::kDisable;  // it reads what it rewrites
  in_force.Tell(count, info);
}

Error SetView(File& file, int64_t displacement, const Datatype* etype, const Datatype* filetype, const std::string& representation,
              const Info* info, const Error& refusal) {
  Ref<View> made;
  AwaitTogether(file);
  Error error = [&]() -> Error {
    WEFT_MPI_TRY(Error(refusal));
    const Representation* found = FindRepresentation(representation);
    if (found == nullptr) {
      return Error(MPI_ERR_UNSUPPORTED_DATAREP,
                   "datarep \"" + representation + "\" is not native, internal, external32 or one of MPI_Register_datarep");
    }
    if (displacement == MPI_DISPLACEMENT_CURRENT) {
      if (!file.sequential()) return Error(MPI_ERR_ARG, "disp is MPI_DISPLACEMENT_CURRENT, which needs MPI_MODE_SEQUENTIAL");
      int64_t now = 0;
      WEFT_MPI_TRY(file.shared.Get(&now));
      if (file.view->empty()) {
        displacement = file.view->displacement();
      } else if (now < 0 || now >= file.view->capacity() / file.view->etype_bytes()) {
        return Error(MPI_ERR_ARG, "the shared file pointer is at " + std::to_string(now) + ", beyond the end of the largest file");
      } else {
        displacement = file.view->OffsetOf(now * file.view->etype_bytes());
      }
    } else if (file.sequential()) {
      return Error(MPI_ERR_ARG, "disp " + std::to_string(displacement) + " must be MPI_DISPLACEMENT_CURRENT in MPI_MODE_SEQUENTIAL");
    }
    return View::Make(displacement, *etype, *filetype, *found, file.may_write(), &made);
  }();
  if (!error.ok()) error = Error(error.mpi_class(), file.name + ": " + error.message());
  WEFT_MPI_TRY(Agree(*file.comm, error));
  WEFT_MPI_TRY(CheckSameValue(file, made->etype().extent, "the extent of etype,"));
  WEFT_MPI_TRY(SetInfo(file, info, {}));
  file.view = made;
  file.pointer = 0;
  if (file.comm->rank == 0) WEFT_MPI_TRY(file.shared.Set(0));
  return Meet(*file.comm);
}

Error SeekTarget(File& file, int64_t offset, int whence, int64_t current, int64_t* target) {
  int64_t from = 0;
  if (whence == MPI_SEEK_CUR) {
    from = current;
  } else if (whence == MPI_SEEK_END) {
    int64_t size = 0;
    WEFT_MPI_TRY(GetSize(file, &size));
    const int64_t etype = file.view->etype_bytes();
    from = (file.view->PositionBefore(size) + etype - 1) / etype;
  } else if (whence != MPI_SEEK_SET) {
    return Error(MPI_ERR_ARG, "whence " + std::to_string(whence) + " is not MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END");
  }
  if (__builtin_add_overflow(from, offset, target) || *target < 0) {
    return Error(MPI_ERR_ARG, file.name + ": offset " + std::to_string(offset) + " from " + std::to_string(from) + " is before the beginning of the view");
  }
  return {};
}

Error SeekShared(File& file, int64_t offset, int whence, const Error& refusal) {
  AwaitTogether(file);
  WEFT_MPI_TRY(Agree(*file.comm, refusal));
  WEFT_MPI_TRY(CheckSameValue(file, offset, "offset"));
  WEFT_MPI_TRY(CheckSameValue(file, whence, "whence"));
  return DoAtFirst(file, {}, [&]() -> Error {
    int64_t now = 0, target = 0;
    WEFT_MPI_TRY(file.shared.Get(&now));
    WEFT_MPI_TRY(SeekTarget(file, offset, whence, now, &target));
    return file.shared.Set(target);
  });
}

}  // namespace weft::mpi::io
