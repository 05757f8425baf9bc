#ifndef CM_RSOCKET_TABLE_H_
#define CM_RSOCKET_TABLE_H_

#include <memory>
#include <shared_mutex>
#include <vector>

#include "cm/rsocket/socket.h"

namespace weft::rsocket {

// The rsockets of this process by number. The child of a fork has none of its parent's: an adapter's connections stay
// with the parent. Thread safe.
class Table {
 public:
  static Table& Process();

  // Gives `socket` a number; makes its descriptor. EMFILE, ENFILE, ENOMEM.
  int Add(std::shared_ptr<Socket> socket, bool close_on_exec);
  // nullptr: no rsocket has that number.
  std::shared_ptr<Socket> Find(int fd) const;
  // Like Find(), and frees the number.
  std::shared_ptr<Socket> Remove(int fd);

 private:
  Table();
  void ForgetAll();
  void FarewellAll();

  mutable std::shared_mutex mutex_;  // guards sockets_
  std::vector<std::shared_ptr<Socket>> sockets_;
};

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_TABLE_H_
