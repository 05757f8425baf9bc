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

// Allocates the numbers of queue pairs that peers reach by number. The upper 16 bits are a port on which this process
// listens; the lower 8 bits count. If WEFT_DEVICES names devices, the process listens only at their addresses,
// otherwise at all present and future addresses. Thread safe.
class PortNumbers {
 public:
  using Listen = std::function<Result<std::shared_ptr<CmListener>, int>(const transport::SocketAddress& at)>;

  // `settings` outlives this object.
  PortNumbers(const Settings& settings, Listen listen) : settings_(settings), listen_(std::move(listen)) {}

  // Returns a free number. Opens a port if all numbers of the open ones are used. Errors: those of the system (EMFILE).
  Result<uint32_t, int> Allocate();
  void Release(uint32_t number);
  bool IsTaken(uint32_t number);
  // Whether the number is in use, or was before it was released.
  bool WasEverTaken(uint32_t number);
  // The device got another address after the port was opened: makes the number reachable there, too.
  void ListenAlsoAt(uint32_t number, transport::SocketAddress address);
  // Closes all ports.
  void Close();

 private:
  using Listeners = std::vector<std::shared_ptr<CmListener>>;
  static constexpr uint32_t kPerPort = 256;
  struct Port {
    Listeners listeners;  // one for each address, or one for all
    uint32_t used = 0;
    uint32_t next = 0;  // where to look first: released numbers are not reused for a while
    std::array<bool, kPerPort> taken{}, was_taken{};
  };

  static uint16_t PortOf(uint32_t number) { return static_cast<uint16_t>(number >> 8); }
  Result<Listeners, int> OpenPort();
  Result<Listeners, int> ListenAtDevices();

  const Settings& settings_;
  const Listen listen_;
  std::mutex mutex_;  // guards the members below; no callback runs while it is held
  std::map<uint16_t, Port> ports_;
};

}  // namespace weft::sim

#endif  // SIM_CM_PORTS_NUMBERS_H_
