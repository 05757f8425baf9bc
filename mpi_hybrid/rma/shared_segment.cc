#include "mpi_hybrid/rma/shared_segment.h"

#include <fcntl.h>
#include <mpi.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/file_limit.h"
#include "mpi_hybrid/coll/collectives.h"

namespace weft::mpi::rma {
namespace {

// Where the others find the first rank's memory file, and how they know that it is that one.
struct Invitation {
  uint64_t cookie = 0;  // in the file's header, behind the mutex; 0: it could not be made
  int32_t pid = 0, fd = -1;
  int32_t error = 0;
};
constexpr size_t kCookieOffset = 1024;
static_assert(sizeof(pthread_mutex_t) <= kCookieOffset);

Error NoMemory(size_t bytes, int error) {
  return Error(MPI_ERR_NO_MEM, std::to_string(bytes) + " bytes of shared memory: " + std::strerror(error));
}

// Whether it worked everywhere.
Error Agree(Comm& comm, const Error& mine) {
  int failed = mine.ok() ? 0 : 1, any = 0;
  Error met = AllReduce(&failed, &any, 1, *Datatype::Find(MPI_INT), *Op::Find(MPI_MAX), comm);
  if (!mine.ok()) return mine;
  WEFT_MPI_TRY(std::move(met));
  if (any == 0) return {};
  return Error(MPI_ERR_RMA_SHARED, "another process of the communicator could not map the shared memory");
}

}  // namespace

Error SharedSegment::Map(int fd, size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return NoMemory(bytes, errno);
  memory_ = static_cast<uint8_t*>(memory);
  bytes_ = bytes;
  return {};
}

Error SharedSegment::MakeFirst(size_t bytes, int* fd) {
  if (!MayMakeFile(bytes)) return NoMemory(bytes, EFBIG);
  *fd = memfd_create("weft-mpi-window", MFD_CLOEXEC);
  if (*fd < 0) *fd = open("/dev/shm", O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);  // has no name either
  if (*fd < 0) return NoMemory(bytes, errno);
  // Reserved now, so that a full memory file system is an error and not a signal later.
  if (int error = posix_fallocate(*fd, 0, static_cast<off_t>(bytes)); error != 0) return NoMemory(bytes, error);
  WEFT_MPI_TRY(Map(*fd, bytes));
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(mutex(), &attributes);
  pthread_mutexattr_destroy(&attributes);
  return {};
}

Error SharedSegment::Make(Comm& comm, size_t bytes, Error failed) {
  bytes += kHeaderBytes;
  Invitation invitation;
  Error mine = std::move(failed);
  int fd = -1;
  if (comm.rank == 0 && mine.ok()) {
    mine = MakeFirst(bytes, &fd);
    if (mine.ok()) {
      if (getrandom(&invitation.cookie, sizeof invitation.cookie, 0) != sizeof invitation.cookie) invitation.cookie = 0;
      invitation.cookie |= 1;
      std::memcpy(memory_ + kCookieOffset, &invitation.cookie, sizeof invitation.cookie);
      invitation.pid = getpid();
      invitation.fd = fd;
    }
  }
  // Every step is taken by all: what fails at one may have gone well at another.
  if (Error told = Broadcast(&invitation, sizeof invitation, *Datatype::Find(MPI_BYTE), 0, comm); mine.ok()) mine = std::move(told);
  if (mine.ok() && comm.rank != 0 && invitation.cookie != 0) {
    const std::string path = "/proc/" + std::to_string(invitation.pid) + "/fd/" + std::to_string(invitation.fd);
    fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd >= 0) mine = Map(fd, bytes);
    uint64_t cookie = 0;
    if (memory_ != nullptr) std::memcpy(&cookie, memory_ + kCookieOffset, sizeof cookie);
    if (fd < 0 || (mine.ok() && cookie != invitation.cookie)) {
      mine =
          Error(MPI_ERR_RMA_SHARED, "rank 0 of the communicator is not on this host, or does not share memory with this process");
    }
  }
  mine = Agree(comm, mine);
  if (fd >= 0) close(fd);
  return mine;
}

SharedSegment::~SharedSegment() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

}  // namespace weft::mpi::rma
