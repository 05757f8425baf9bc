#ifndef CM_RSOCKET_LINGERING_H_
#define CM_RSOCKET_LINGERING_H_

#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "cm/rsocket/socket.h"

namespace weft::rsocket {

// Sockets that were closed while what was sent had not reached the peer, as the kernel keeps those of TCP: rclose does
// not wait for a peer that is silent, and what was written still arrives. A thread looks after them, as long as there
// are any. Each has a time of its own after which it goes. Thread safe; the child of a fork has none.
class Lingering {
 public:
  // More than these, and the first gives way.
  static constexpr size_t kMost = 1024;

  static Lingering& Process();

  // Socket::Close() of it returned false.
  void Add(std::shared_ptr<Socket> socket);
  bool any() const;
  std::vector<std::shared_ptr<Socket>> Sockets() const;

 private:
  Lingering();
  void Run();

  mutable std::mutex mutex_;  // guards the rest
  std::list<std::shared_ptr<Socket>> sockets_;
  bool thread_runs_ = false;
};

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_LINGERING_H_
