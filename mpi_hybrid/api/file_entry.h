#ifndef MPI_HYBRID_API_FILE_ENTRY_H_
#define MPI_HYBRID_API_FILE_ENTRY_H_

#include <mpi.h>

#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/report.h"
#include "mpi_hybrid/io/file.h"

// Entries of functions on files (entry.h has those of other objects).
namespace weft::mpi {

Error NoSuchFile(MPI_File handle);

// Takes the lock, finds the file and keeps it alive, runs `body(file) -> Error`, and reports an error to the file's
// handler.
template <typename Body>
int OnFile(const char* name, MPI_File handle, Body body) {
  LockGuard lock;
  if (g_library_state != LibraryState::kRunning) [[unlikely]] NotRunning(name);
  const Ref<io::File> file(io::File::Find(handle));
  if (!file) [[unlikely]] return ReportOnFile(name, MPI_FILE_NULL, NoSuchFile(handle));
  Error error = body(*file);
  if (error.ok()) [[likely]] return MPI_SUCCESS;
  return ReportOnFile(name, handle, error);
}

// For functions without a file: errors go to the handler of MPI_FILE_NULL (MPI 4.0 section 14.7).
template <typename Body>
int WithoutFile(const char* name, Body body) {
  LockGuard lock;
  if (g_library_state != LibraryState::kRunning) [[unlikely]] NotRunning(name);
  return ReportOnFile(name, MPI_FILE_NULL, body());
}

}  // namespace weft::mpi

#endif  // MPI_HYBRID_API_FILE_ENTRY_H_
