#ifndef CM_RSOCKET_LINGERING_H_
#define CM_RSOCKET_LINGERING_H_

#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "cm/rsocket/socket.h"

namespace weft::rsocket {

// Sockets that were closed before everything sent had reached the peer, like the kernel's lingering TCP sockets: rclose
// does not wait for a silent peer, and the data still arrives. A thread serves them as long as there are any. Each has
// a time limit. Thread safe. The child of a fork has none.
class Lingering {
 public:
  // If there are more, the first is dropped.
  static constexpr size_t kMost = 1024;

  static Lingering& Process();

  // Takes a socket whose Socket::Close() returned false.
  void Add(std::shared_ptr<Socket> socket);
  bool any() const;
  std::vector<std::shared_ptr<Socket>> Sockets() const;

 private:
  Lingering();
  void Run();

  mutable std::mutex mutex_;  // guards the members below
  std::list<std::shared_ptr<Socket>> sockets_;
  bool thread_runs_ = false;
};

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_LINGERING_H_
