#ifndef WIRES_CHOICE_CHOICE_H_
#define WIRES_CHOICE_CHOICE_H_

#include <chrono>
#include <memory>

#include "llp/handshake.h"
#include "transport/network.h"

// A wire made of two wires: a listener is reachable over either, at the same port.
namespace weft {

// How long `first` may try to reach a peer before `second` is tried.
inline constexpr std::chrono::milliseconds kFirstWireLimit{1000};

enum class Connecting : uint8_t {
  kFirst,           // only over the first
  kFirstThenSecond  // over the second if the peer cannot be reached by the first
};

// With kFirstThenSecond, listeners also work without the first wire if it has no room for them; they log this.
// `network` outlives the result and everything that it makes.
std::unique_ptr<llp::Wire> MakeChoice(transport::Network& network, std::unique_ptr<llp::Wire> first, std::unique_ptr<llp::Wire> second,
                                      Connecting connecting);

}  // namespace weft

#endif  // WIRES_CHOICE_CHOICE_H_
