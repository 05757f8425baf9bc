#include "base/testing/kernel_copies.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>

namespace {

std::atomic<unsigned> g_copies{0};

}  // namespace

extern "C" ssize_t process_vm_readv(pid_t pid, const iovec* local, unsigned long local_count, const iovec* remote, unsigned long remote_count,
                                    unsigned long flags) {
  ++g_copies;
  return syscall(SYS_process_vm_readv, pid, local, local_count, remote, remote_count, flags);
}

extern "C" ssize_t process_vm_writev(pid_t pid, const iovec* local, unsigned long local_count, const iovec* remote, unsigned long remote_count,
                                     unsigned long flags) {
  ++g_copies;
  return syscall(SYS_process_vm_writev, pid, local, local_count, remote, remote_count, flags);
}

namespace weft::testing {

unsigned KernelCopies() { return g_copies; }

}  // namespace weft::testing
