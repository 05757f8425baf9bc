#ifndef CONTROL_SERVER_H_
#define CONTROL_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "transport/network.h"

namespace weft::control {

struct Answer {
  bool ok = true;
  std::string text;
  // Called when the answer is being sent, before its end: the process may end here, too.
  std::function<void()> then;
};

// Answers requests of processes of the same user, on the network's thread. Never blocks.
class Server {
 public:
  // `command`: the first line of a request; `body`: the data that follows.
  using Handler = std::function<Answer(const std::string& command, const std::string& body)>;

  // nullptr: this process already has a server, or no descriptor is left. The program continues without one; this is no
  // failure. `network` outlives the server.
  static std::unique_ptr<Server> Start(transport::Network& network, Handler handler);
  virtual ~Server() = default;
};

}  // namespace weft::control

#endif  // CONTROL_SERVER_H_
