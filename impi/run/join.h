#ifndef IMPI_RUN_JOIN_H_
#define IMPI_RUN_JOIN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/descriptor.h"
#include "base/result.h"
#include "impi/client/dialogue.h"
#include "pmi/launch/poller.h"

namespace weft::impi {

// Waits for one event as Poller::Wait does, and for what else concerns the owner. Returns why the client does not join, or nothing.
using Waiter = std::function<std::optional<std::string>(pmi::Poller& poller, int milliseconds)>;

// A client's connection to the server of its job, from the start to FINI.
class ServerLink {
 public:
  // Connects to `address` (numeric) and says all that `setup` holds, until all clients have. Waits for the other clients, with `wait` if there is one. Why not: a sentence.
  static Result<std::unique_ptr<ServerLink>, std::string> Join(const std::string& address, uint16_t port, Dialogue::Setup setup, const Waiter& wait = {});

  const Dialogue& dialogue() const { return dialogue_; }
  // To be watched while the job runs. When it can be read: LookAtServer. Why the job has failed, if it has.
  int fd() const { return fd_.get(); }
  std::optional<std::string> LookAtServer();
  // All processes of the client have ended: sends FINI, and closes.
  void Leave();

 private:
  ServerLink(Descriptor fd, Dialogue::Setup setup);
  bool Talk(const Waiter& wait);

  Descriptor fd_;
  Dialogue dialogue_;
  std::optional<std::string> interrupted_;  // by the Waiter: why
};

}  // namespace weft::impi

#endif  // IMPI_RUN_JOIN_H_
