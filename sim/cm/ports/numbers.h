#ifndef SIM_CM_PORTS_NUMBERS_H_
#define SIM_CM_PORTS_NUMBERS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "base/settings.h"
#include "sim/cm/api.h"
#include "transport/socket_address.h"

namespace weft::sim {

// The numbers of queue pairs that others can reach by them: the upper 16 bits are a port on which this process listens, the lower 8 bits count.
// Where WEFT_DEVICES names devices it listens at their addresses only, else at all that there are and will be. Thread safe.
class PortNumbers {
 public:
  using Listen = std::function<Result<std::shared_ptr<CmListener>, int>(const transport::SocketAddress& at)>;

  // `settings` outlives it.
  PortNumbers(const Settings& settings, Listen listen) : settings_(settings), listen_(std::move(listen)) {}

  // One that is free; opens a port when those that there are have given out all of theirs. Errors: the system's (EMFILE).
  Result<uint32_t, int> Allocate();
  void Release(uint32_t number);
  bool IsTaken(uint32_t number);
  // It is, or was before it was released.
  bool WasEverTaken(uint32_t number);
  // An address that its device got after the port was opened: the number is reached there as well.
  void ListenAlsoAt(uint32_t number, transport::SocketAddress address);
  // Closes all ports.
  void Close();

 private:
  using Listeners = std::vector<std::shared_ptr<CmListener>>;
  static constexpr uint32_t kPerPort = 256;
  struct Port {
    Listeners listeners;  // one for each address, or one for all
    uint32_t used = 0;
    uint32_t next = 0;  // where to look first: numbers that were given back rest for a while
    std::array<bool, kPerPort> taken{}, was_taken{};
  };

  static uint16_t PortOf(uint32_t number) { return static_cast<uint16_t>(number >> 8); }
  Result<Listeners, int> OpenPort();
  Result<Listeners, int> ListenAtDevices();

  const Settings& settings_;
  const Listen listen_;
  std::mutex mutex_;  // guards what follows; nothing is called with it held
  std::map<uint16_t, Port> ports_;
};

}  // namespace weft::sim

#endif  // SIM_CM_PORTS_NUMBERS_H_
