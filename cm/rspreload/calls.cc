#include "cm/rspreload/calls.h"

#include <cstdio>
#include <string>

namespace weft::rspreload {
namespace {

void* Open(const std::string& directory, const char* name) {
  if (void* library = dlopen((directory + name).c_str(), RTLD_NOW | RTLD_GLOBAL)) return library;
  return dlopen(name, RTLD_NOW | RTLD_GLOBAL);
}

template <typename Function>
bool Find(void* library, const char* name, Function* into) {
  *into = reinterpret_cast<Function>(dlsym(library, name));
  return *into != nullptr;
}

const Rsockets* Load() {
  Dl_info self{};
  std::string above;
  if (dladdr(reinterpret_cast<void*>(&Load), &self) != 0 && self.dli_fname != nullptr) {
    const std::string file = self.dli_fname;
    const size_t slash = file.rfind('/');
    if (slash != std::string::npos) above = file.substr(0, slash) + "/../";
  }
  Open(above, "libibverbs.so.1");  // the one that belongs to the other
  void* const library = Open(above, "librdmacm.so.1");
  static Rsockets calls;
  if (library != nullptr && Find(library, "rsocket", &calls.socket) && Find(library, "rbind", &calls.bind) &&
      Find(library, "rlisten", &calls.listen) && Find(library, "raccept", &calls.accept) &&
      Find(library, "rconnect", &calls.connect) && Find(library, "rshutdown", &calls.shutdown) &&
      Find(library, "rclose", &calls.close) && Find(library, "rrecvfrom", &calls.recvfrom) &&
      Find(library, "rrecvmsg", &calls.recvmsg) && Find(library, "rsendto", &calls.sendto) &&
      Find(library, "rsendmsg", &calls.sendmsg) && Find(library, "rreadv", &calls.readv) &&
      Find(library, "rwritev", &calls.writev) && Find(library, "rpoll", &calls.poll) &&
      Find(library, "rgetpeername", &calls.getpeername) && Find(library, "rgetsockname", &calls.getsockname) &&
      Find(library, "rsetsockopt", &calls.setsockopt) && Find(library, "rgetsockopt", &calls.getsockopt) &&
      Find(library, "rfcntl", &calls.fcntl)) {
    return &calls;
  }
  fprintf(stderr, "librspreload.so: no librdmacm.so.1 with rsockets (%s); TCP sockets are not replaced\n", dlerror());
  return nullptr;
}

}  // namespace

const Rsockets* Rsockets::Get() {
  static const Rsockets* const calls = Load();
  return calls;
}

}  // namespace weft::rspreload
