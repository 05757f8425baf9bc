#include <string>

#include "mpi_hybrid/api/bindings.h"
#include "mpi_hybrid/api/comm_arguments.h"
#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/file_entry.h"
#include "mpi_hybrid/coll/spanning.h"
#include "mpi_hybrid/io/file.h"

// Files: opening, closing, asking (MPI 4.0 sections 14.2 and 14.6), and their handles in Fortran.
namespace weft::mpi {

Error NoSuchFile(MPI_File handle) {
  if (handle == MPI_FILE_NULL) return Error(MPI_ERR_FILE, "the file handle is MPI_FILE_NULL");
  return Error(MPI_ERR_FILE, "the file handle is not that of an open file (never opened, or closed)");
}

namespace {

Error CheckName(const char* filename) {
  WEFT_MPI_TRY(CheckNotNull(filename, "filename"));
  return *filename != '\0' ? Error() : Error(MPI_ERR_BAD_FILE, "filename is empty");
}

int OpenOver(const char* name, MPI_Comm handle, const char* filename, int amode, MPI_Info info, MPI_File* fh) {
  return WithoutFile(name, [&]() -> Error {
    Comm* comm = Comm::Find(handle);
    if (comm == nullptr) return NoSuchComm(handle);
    WEFT_MPI_TRY(CheckIntra(*comm));
    WEFT_MPI_TRY(CheckWithinClient(*comm, "files"));
    Info* hints = nullptr;
    const Error refusal = [&]() -> Error {
      WEFT_MPI_TRY(CheckNotNull(fh, "fh"));
      WEFT_MPI_TRY(CheckName(filename));
      return FindInfo(info, &hints);
    }();
    if (fh != nullptr) *fh = MPI_FILE_NULL;
    Ref<io::File> opened;
    WEFT_MPI_TRY(io::Open(*comm, filename != nullptr ? filename : "", amode, hints, refusal, &opened));
    opened->AddRef();  // the handle's
    *fh = opened->handle();
    return {};
  });
}

// The handle goes whatever the outcome, as the descriptor of close(2).
int CloseFile(const char* name, MPI_File* fh) {
  LockGuard lock;
  if (g_library_state != LibraryState::kRunning) NotRunning(name);
  if (fh == nullptr) return ReportOnFile(name, MPI_FILE_NULL, CheckNotNull(fh, "fh"));
  const Ref<io::File> file(io::File::Find(*fh));
  if (!file) return ReportOnFile(name, MPI_FILE_NULL, NoSuchFile(*fh));
  const Error error = io::Close(file);
  if (io::File::Find(*fh) != nullptr) return ReportOnFile(name, *fh, error);  // it stays open
  *fh = MPI_FILE_NULL;
  const int code = ReportOnFileWith(name, *file->error_handler, file->handle(), error);
  file->Release();
  return code;
}

Error CheckBytes(MPI_Offset size) {
  return size >= 0 ? Error() : Error(MPI_ERR_ARG, "size " + std::to_string(size) + " is negative");
}

Error CheckWritable(const io::File& file) {
  if (file.may_write()) return {};
  return Error(MPI_ERR_READ_ONLY, file.name + " was opened with MPI_MODE_RDONLY: it cannot be changed");
}

Error CheckSize(const io::File& file, MPI_Offset size) {
  WEFT_MPI_TRY(CheckBytes(size));
  return CheckWritable(file);
}

template <typename T, typename Value>
Error TellValue(T* to, const char* argument, const Value& value) {
  WEFT_MPI_TRY(CheckNotNull(to, argument));
  *to = value();
  return {};
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

WEFT_MPI_FUNCTION(File_open, (MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh),
                  OpenOver(name, comm, filename, amode, info, fh))

WEFT_MPI_FUNCTION(File_close, (MPI_File * fh), CloseFile(name, fh))

int PMPI_File_delete(const char* filename, MPI_Info info) {
  return WithoutFile("MPI_File_delete", [&]() -> Error {
    Info* hints;
    WEFT_MPI_TRY(CheckName(filename));
    WEFT_MPI_TRY(FindInfo(info, &hints));
    return io::Delete(filename);
  });
}
WEFT_MPI_ALIAS(File_delete)

WEFT_MPI_FUNCTION(File_set_size, (MPI_File fh, MPI_Offset size),
                  OnFile(name, fh, [&](io::File& f) { return io::SetSize(f, size, CheckSize(f, size)); }))

WEFT_MPI_FUNCTION(File_preallocate, (MPI_File fh, MPI_Offset size),
                  OnFile(name, fh, [&](io::File& f) { return io::Preallocate(f, size, CheckSize(f, size)); }))

int PMPI_File_get_size(MPI_File fh, MPI_Offset* size) {
  return OnFile("MPI_File_get_size", fh, [&](io::File& f) -> Error {
    WEFT_MPI_TRY(CheckNotNull(size, "size"));
    int64_t bytes = 0;
    WEFT_MPI_TRY(io::GetSize(f, &bytes));
    *size = bytes;
    return {};
  });
}
WEFT_MPI_ALIAS(File_get_size)

WEFT_MPI_FUNCTION(File_get_group, (MPI_File fh, MPI_Group* group),
                  OnFile(name, fh, [&](io::File& f) { return TellValue(group, "group", [&] { return Group::Give(f.comm->local); }); }))

WEFT_MPI_FUNCTION(File_get_amode, (MPI_File fh, int* amode),
                  OnFile(name, fh, [&](io::File& f) { return TellValue(amode, "amode", [&] { return f.amode; }); }))

int PMPI_File_set_info(MPI_File fh, MPI_Info info) {
  return OnFile("MPI_File_set_info", fh, [&](io::File& f) {
    Info* hints = nullptr;
    const Error refusal = FindInfo(info, &hints);
    return io::SetInfo(f, hints, refusal);
  });
}
WEFT_MPI_ALIAS(File_set_info)

int PMPI_File_get_info(MPI_File fh, MPI_Info* info_used) {
  return OnFile("MPI_File_get_info", fh, [&](io::File& f) -> Error {
    WEFT_MPI_TRY(CheckNotNull(info_used, "info_used"));
    Info& made = MakeInfo();
    io::TellInfo(f, &made);
    *info_used = made.handle;
    return {};
  });
}
WEFT_MPI_ALIAS(File_get_info)

WEFT_MPI_FUNCTION(File_set_atomicity, (MPI_File fh, int flag),
                  OnFile(name, fh, [&](io::File& f) { return io::SetAtomicity(f, flag != 0); }))

WEFT_MPI_FUNCTION(File_get_atomicity, (MPI_File fh, int* flag),
                  OnFile(name, fh, [&](io::File& f) { return TellValue(flag, "flag", [&] { return f.atomic ? 1 : 0; }); }))

WEFT_MPI_FUNCTION(File_sync, (MPI_File fh), OnFile(name, fh, [&](io::File& f) { return io::Sync(f); }))

MPI_Fint PMPI_File_c2f(MPI_File file) {
  LockGuard lock;
  return io::File::Number(file);
}
WEFT_MPI_ALIAS(File_c2f)

MPI_File PMPI_File_f2c(MPI_Fint file) {
  LockGuard lock;
  return io::File::Numbered(file);
}
WEFT_MPI_ALIAS(File_f2c)
