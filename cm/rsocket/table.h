#ifndef CM_RSOCKET_TABLE_H_
#define CM_RSOCKET_TABLE_H_

#include <memory>
#include <shared_mutex>
#include <vector>

#include "cm/rsocket/socket.h"

namespace weft::rsocket {

// The rsockets of this process by number. A fork's child has none of its parent's: the adapter's connections stay with the parent.
// Thread safe.
class Table {
 public:
  static Table& Process();

  // Gives `socket` a number (its descriptor is made here). EMFILE, ENFILE, ENOMEM.
  int Add(std::shared_ptr<Socket> socket, bool close_on_exec);
  // nullptr: no rsocket has that number.
  std::shared_ptr<Socket> Find(int fd) const;
  // The same, and the number is free.
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
