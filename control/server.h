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
  // Done when the answer is on its way, before its end is: the process may not live to answer afterwards.
  std::function<void()> then;
};

// Answers requests of processes of the same user, on the network's thread. Nothing in it blocks.
class Server {
 public:
  // `command` is the first line of a request, `body` what follows it.
  using Handler = std::function<Answer(const std::string& command, const std::string& body)>;

  // nullptr: this process has one, or there is no descriptor left; that is no failure of the
  // program, which goes on without. `network` outlives the server.
  static std::unique_ptr<Server> Start(transport::Network& network, Handler handler);
  virtual ~Server() = default;
};

}  // namespace weft::control

#endif  // CONTROL_SERVER_H_
