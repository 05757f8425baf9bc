#ifndef IMPI_RUN_JOIN_H_
#define IMPI_RUN_JOIN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/descriptor.h"
#include "base/result.h"
#include "impi/client/dialogue.h"

namespace weft::impi {

// A client's connection to the server of its job, from the start to FINI.
class ServerLink {
 public:
  // Connects to `address` (numeric) and says all that `setup` holds, until all clients have. Waits for the other clients. Why not: a sentence.
  static Result<std::unique_ptr<ServerLink>, std::string> Join(const std::string& address, uint16_t port, Dialogue::Setup setup);

  const Dialogue& dialogue() const { return dialogue_; }
  // To be watched while the job runs. When it can be read: LookAtServer. Why the job has failed, if it has.
  int fd() const { return fd_.get(); }
  std::optional<std::string> LookAtServer();
  // All processes of the client have ended: sends FINI, and closes.
  void Leave();

 private:
  ServerLink(Descriptor fd, Dialogue::Setup setup);
  bool Talk();

  Descriptor fd_;
  Dialogue dialogue_;
};

}  // namespace weft::impi

#endif  // IMPI_RUN_JOIN_H_
