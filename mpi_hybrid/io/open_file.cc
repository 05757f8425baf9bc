#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "mpi_hybrid/coll/make_comm.h"
#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/io/agreement.h"
#include "mpi_hybrid/io/background.h"
#include "mpi_hybrid/io/file.h"
#include "mpi_hybrid/io/io_error.h"
#include "mpi_hybrid/io/posix_file.h"

// Opening, closing and deleting files (MPI 4.0 section 14.2).
namespace weft::mpi::io {
namespace {

constexpr int kAccessModes = MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR;
constexpr int kAllModes = kAccessModes | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_UNIQUE_OPEN | MPI_MODE_EXCL | MPI_MODE_APPEND |
                          MPI_MODE_SEQUENTIAL;

Error CheckMode(int amode) {
  const std::string which = "amode " + std::to_string(amode);
  if ((amode & ~kAllModes) != 0) return Error(MPI_ERR_AMODE, which + " has bits that are not an MPI_MODE_ of files");
  const int access = amode & kAccessModes;
  if (access == 0 || (access & (access - 1)) != 0) {
    return Error(MPI_ERR_AMODE, which + " needs exactly one of MPI_MODE_RDONLY, MPI_MODE_WRONLY and MPI_MODE_RDWR");
  }
  if (access == MPI_MODE_RDONLY && (amode & (MPI_MODE_CREATE | MPI_MODE_EXCL)) != 0) {
    return Error(MPI_ERR_AMODE, which + " has MPI_MODE_CREATE or MPI_MODE_EXCL, which MPI_MODE_RDONLY forbids");
  }
  if (access == MPI_MODE_RDWR && (amode & MPI_MODE_SEQUENTIAL) != 0) {
    return Error(MPI_ERR_AMODE, which + " has MPI_MODE_SEQUENTIAL, which MPI_MODE_RDWR forbids");
  }
  return {};
}

// "ufs:NAME": which file system it is on, for implementations to which it matters.
std::string WithoutFileSystem(const std::string& name) {
  for (const char* prefix : {"ufs:", "nfs:"}) {
    if (name.rfind(prefix, 0) == 0) return name.substr(4);
  }
  return name;
}

Error OpenRaw(File& file, int extra_flags) {
  int flags = O_RDWR;
  if ((file.amode & MPI_MODE_RDONLY) != 0) flags = O_RDONLY;
  if ((file.amode & MPI_MODE_WRONLY) != 0) flags = O_WRONLY;
  const int error = Unlocked([&] { return PosixFile::Open(file.name, flags | extra_flags, 0666, &file.raw); });
  return error == 0 ? Error() : FileError(error, file.name, "open it");
}

// Rank 0 makes the file if it is to be made; the others find it there.
Error OpenEverywhere(File& file) {
  Comm& comm = *file.comm;
  Error opened;
  if (comm.rank == 0) {
    int flags = (file.amode & MPI_MODE_CREATE) != 0 ? O_CREAT : 0;
    if ((file.amode & MPI_MODE_EXCL) != 0) flags |= O_EXCL;
    opened = OpenRaw(file, flags);
  }
  if (comm.size() == 1) return opened;
  WEFT_MPI_TRY(Agree(comm, opened));
  if (comm.rank != 0) opened = OpenRaw(file, 0);
  return Agree(comm, opened);
}

// What all ranks must say alike.
Error CheckSameMode(Comm& comm, int amode) {
  int of_first = amode;
  WEFT_MPI_TRY(TellBytes(comm, 0, &of_first, sizeof of_first));
  if (of_first == amode) return {};
  return Error(MPI_ERR_NOT_SAME, "amode " + std::to_string(amode) + " differs from that of rank 0, " + std::to_string(of_first));
}

Error Remove(const std::string& name) {
  const int error = Unlocked([&] { return unlink(name.c_str()) == 0 ? 0 : errno; });
  return error == 0 ? Error() : FileError(error, name, "delete it");
}

}  // namespace

Error Open(Comm& comm, const std::string& name, int amode, const Info* info, const Error& refusal, Ref<File>* opened) {
  auto file = MakeRef<File>();
  file->name = WithoutFileSystem(name);
  file->amode = amode;
  const Error may = refusal.ok() ? CheckMode(amode) : refusal;
  WEFT_MPI_TRY(Duplicate(comm, &file->comm));
  file->comm->error_handler = Ref<ErrorHandler>(&ReturnErrorHandler());
  file->error_handler = Ref<ErrorHandler>(&FileErrorHandler());
  Error error = [&]() -> Error {
    WEFT_MPI_TRY(Agree(*file->comm, may));
    WEFT_MPI_TRY(Agree(*file->comm, CheckSameMode(*file->comm, amode)));
    WEFT_MPI_TRY(OpenEverywhere(*file));
    WEFT_MPI_TRY(SetInfo(*file, info, {}));
    file->view = View::Initial();
    WEFT_MPI_TRY(file->shared.Make(*file->comm));
    if ((amode & MPI_MODE_APPEND) == 0) return {};
    int64_t end = 0;
    WEFT_MPI_TRY(Agree(*file->comm, GetSize(*file, &end)));
    file->pointer = end;
    if (file->comm->rank == 0) WEFT_MPI_TRY(file->shared.Set(end));
    return Meet(*file->comm);
  }();
  if (error.ok()) *opened = file;
  return error;
}

Error Close(const Ref<File>& file) {
  if (file->split != nullptr) {
    return Error(MPI_ERR_IO, file->name + ": a split collective call has begun and not ended, so that the file cannot be closed");
  }
  EndBackground(*file);
  const Ref<Comm> comm = file->comm;
  // Where not all come here nobody waits for those who do not.
  Error error = Meet(*comm);
  const bool broken = !error.ok();
  if (Error dropped = file->shared.Drop(broken); error.ok()) error = std::move(dropped);
  if (file->aggregators) {
    if (Error dropped = file->aggregators->Drop(broken); error.ok()) error = std::move(dropped);
    file->aggregators.reset();
  }
  // Nobody deletes what another still uses.
  const int failed = Unlocked([&] { return file->raw->Close(); });
  file->raw.reset();
  Error closed = Agree(*comm, failed == 0 ? Error() : FileError(failed, file->name, "close it: written data may be lost"));
  if (error.ok()) error = std::move(closed);
  if ((file->amode & MPI_MODE_DELETE_ON_CLOSE) != 0) {
    Error removed = comm->rank == 0 ? Remove(file->name) : Error();
    removed = Agree(*comm, removed);
    if (error.ok()) error = std::move(removed);
  }
  file->comm = nullptr;
  return error;
}

Error Delete(const std::string& name) { return Remove(WithoutFileSystem(name)); }

}  // namespace weft::mpi::io
