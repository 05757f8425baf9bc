#ifndef MPI_HYBRID_IO_FILE_H_
#define MPI_HYBRID_IO_FILE_H_

#include <mpi.h>

#include <memory>
#include <mutex>
#include <string>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/error_handler.h"
#include "mpi_hybrid/core/info.h"
#include "mpi_hybrid/core/ref.h"
#include "mpi_hybrid/io/aggregators.h"
#include "mpi_hybrid/io/hints.h"
#include "mpi_hybrid/io/raw_file.h"
#include "mpi_hybrid/io/shared_pointer.h"
#include "mpi_hybrid/io/task_thread.h"
#include "mpi_hybrid/io/view.h"
#include "mpi_hybrid/p2p/request/request.h"

namespace weft::mpi::io {

// The object behind an MPI_File, which is a pointer to it. The library's lock guards all members except `raw`, `name`
// and `locked_mutex`, which transfers use without it. Running operations keep the object alive; MPI_File_close waits
// for them.
class File : public RefCounted<File> {
 public:
  Ref<Comm> comm;  // a private duplicate
  std::string name;
  int amode = 0;
  std::unique_ptr<RawFile> raw;
  Hints hints;
  Ref<View> view;
  int64_t pointer = 0;  // this process's own, in etypes
  SharedPointer shared;
  bool atomic = false;
  std::mutex locked_mutex;  // held around locks of ranges, which do not exclude this process's own threads
  Ref<ErrorHandler> error_handler;
  std::unique_ptr<Aggregators> aggregators;  // made by the first collective access that needs them

  // State of the background operations (background.h).
  int alone_under_way = 0, together_under_way = 0;
  std::unique_ptr<TaskThread> thread;  // for collective accesses in the background; made at its first use
  Request* split = nullptr;            // the split collective call that has begun; owns a reference
  int split_mark = 0;                  // which call that is

  bool may_read() const { return (amode & MPI_MODE_WRONLY) == 0; }
  bool may_write() const { return (amode & MPI_MODE_RDONLY) == 0; }
  // Writers also rewrite the gaps between their pieces (hint romio_ds_write). Therefore every writer locks the range
  // that it writes.
  bool writes_locked() const { return hints.ds_write == Hints::Choice::kEnable && may_read(); }
  bool sequential() const { return (amode & MPI_MODE_SEQUENTIAL) != 0; }

  MPI_File handle() { return reinterpret_cast<MPI_File>(this); }
  // Null: not an open file.
  static File* Find(MPI_File handle);
  // Small numbers for Fortran; 0 is MPI_FILE_NULL.
  static MPI_Fint Number(MPI_File handle);
  static MPI_File Numbered(MPI_Fint number);

  File();
  ~File();
};

// MPI_File_open; collective. `refusal`: why this process cannot take part; then all fail.
Error Open(Comm& comm, const std::string& name, int amode, const Info* info, const Error& refusal, Ref<File>* opened);
// MPI_File_close; collective. Afterwards the handle is invalid, whatever is returned. Exception: a split collective
// call has not ended; then the file stays open.
Error Close(const Ref<File>& file);
Error Delete(const std::string& name);

// MPI_File_set_size, MPI_File_preallocate and MPI_File_sync; collective. `refusal` as above.
Error SetSize(File& file, int64_t bytes, const Error& refusal);
Error Preallocate(File& file, int64_t bytes, const Error& refusal);
Error Sync(File& file);
Error GetSize(File& file, int64_t* bytes);
Error SetAtomicity(File& file, bool atomic);

// MPI_File_set_info; collective. The hints of rank 0 apply to all ranks.
Error SetInfo(File& file, const Info* info, const Error& refusal);
void TellInfo(const File& file, Info* info);

// MPI_File_set_view; collective. The types may be null only together with a `refusal`. MPI_DISPLACEMENT_CURRENT means
// the displacement of the shared pointer.
Error SetView(File& file, int64_t displacement, const Datatype* etype, const Datatype* filetype, const std::string& representation,
              const Info* info, const Error& refusal);

// MPI_File_seek_shared; collective. All ranks pass the same arguments.
Error SeekShared(File& file, int64_t offset, int whence, const Error& refusal);

// The position, in etypes, of `offset` relative to `whence`. MPI_ERR_ARG: `whence` is not an MPI_SEEK_..., or the
// position is before the beginning.
Error SeekTarget(File& file, int64_t offset, int whence, int64_t current, int64_t* target);

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_FILE_H_
