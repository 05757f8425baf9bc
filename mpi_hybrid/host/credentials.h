#ifndef MPI_HYBRID_HOST_CREDENTIALS_H_
#define MPI_HYBRID_HOST_CREDENTIALS_H_

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>

namespace weft::mpi::host {

// Whether the kernel says that the process at the other end of a unix socket belongs to this user. `*pid`: its process
// id as this process sees it; 0: it is not visible in this pid namespace.
inline bool IsOfThisUser(int socket, pid_t* pid = nullptr) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  if (pid != nullptr) *pid = peer.pid;
  return peer.uid == geteuid();
}

// The number of this process's pid namespace; 0: there is no /proc to read it from.
inline uint64_t PidNamespace() {
  struct stat state;
  return stat("/proc/self/ns/pid", &state) == 0 ? static_cast<uint64_t>(state.st_ino) : 0;
}

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_HOST_CREDENTIALS_H_
