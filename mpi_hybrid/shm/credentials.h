#ifndef MPI_HYBRID_SHM_CREDENTIALS_H_
#define MPI_HYBRID_SHM_CREDENTIALS_H_

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>

namespace weft::mpi::shm {

// Whether the process at the other end of a unix socket is this user's, as the kernel says; and what the kernel calls it
// here (0: it is not to be seen in this pid namespace).
inline bool IsOfThisUser(int socket, pid_t* pid = nullptr) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  if (pid != nullptr) *pid = peer.pid;
  return peer.uid == geteuid();
}

// A number of this process's pid namespace; 0: there is no /proc to tell it.
inline uint64_t PidNamespace() {
  struct stat state;
  return stat("/proc/self/ns/pid", &state) == 0 ? static_cast<uint64_t>(state.st_ino) : 0;
}

}  // namespace weft::mpi::shm

#endif  // MPI_HYBRID_SHM_CREDENTIALS_H_
