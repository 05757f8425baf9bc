#include "wires/host/meeting/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file_limit.h"

namespace weft::host {
namespace {

constexpr unsigned kNoExecSeal = 8;  // MFD_NOEXEC_SEAL of newer kernels and headers

int OpenMemory() {
  const int fd = memfd_create("weft", MFD_CLOEXEC | MFD_ALLOW_SEALING | kNoExecSeal);
  return fd >= 0 || errno != EINVAL ? fd : memfd_create("weft", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

}  // namespace

std::unique_ptr<SharedMemory> SharedMemory::Create(int* fd) {
  uint64_t secrets[2];
  if (!MayMakeFile(kBytes)) return nullptr;
  if (getrandom(secrets, sizeof secrets, GRND_NONBLOCK) != sizeof secrets) return nullptr;
  *fd = OpenMemory();
  if (*fd < 0) return nullptr;
  std::unique_ptr<SharedMemory> memory;
  if (ftruncate(*fd, kBytes) == 0 && fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) memory = Map(*fd);
  if (memory == nullptr) {
    close(std::exchange(*fd, -1));
    return nullptr;
  }
  ControlPage& control = memory->control();
  control.secret_to_responder = secrets[0];
  control.secret_to_initiator = secrets[1];
  // Both sleep until they say otherwise.
  control.to_responder.wants_data.store(1);
  control.to_initiator.wants_data.store(1);
  return memory;
}

std::unique_ptr<SharedMemory> SharedMemory::Adopt(int fd) {
  struct stat status{};
  const int seals = fcntl(fd, F_GET_SEALS);  // what is not in memory has none
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &status) != 0 || status.st_size != kBytes) return nullptr;
  return Map(fd);
}

std::unique_ptr<SharedMemory> SharedMemory::Map(int fd) {
  void* base = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return nullptr;
  return std::unique_ptr<SharedMemory>(new SharedMemory(static_cast<uint8_t*>(base)));
}

SharedMemory::~SharedMemory() { munmap(base_, kBytes); }

Producer SharedMemory::MakeProducer(bool initiator) {
  uint8_t* const rings = base_ + kControlBytes;
  return initiator ? Producer(control().to_responder, rings, control().secret_to_responder)
                   : Producer(control().to_initiator, rings + kRingBytes, control().secret_to_initiator);
}

Consumer SharedMemory::MakeConsumer(bool initiator) {
  uint8_t* const rings = base_ + kControlBytes;
  return initiator ? Consumer(control().to_initiator, rings + kRingBytes, control().secret_to_initiator)
                   : Consumer(control().to_responder, rings, control().secret_to_responder);
}

}  // namespace weft::host
