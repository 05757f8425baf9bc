#ifndef WIRES_CHOICE_CHOICE_H_
#define WIRES_CHOICE_CHOICE_H_

#include <chrono>
#include <memory>

#include "llp/handshake.h"
#include "transport/network.h"

// Two wires that are one: those who listen are reached over either, at the same port.
namespace weft {

// How long `first` may take to reach a peer before `second` is tried.
inline constexpr std::chrono::milliseconds kFirstWireLimit{1000};

enum class Connecting : uint8_t {
  kFirst,           // over the first
  kFirstThenSecond  // over the second where the peer is not reached by the first
};

// kFirstThenSecond also means that listeners do without the first where it has no room for them; they say so in the log.
// `network` outlives it and what it makes.
std::unique_ptr<llp::Wire> MakeChoice(transport::Network& network, std::unique_ptr<llp::Wire> first, std::unique_ptr<llp::Wire> second,
                                      Connecting connecting);

}  // namespace weft

#endif  // WIRES_CHOICE_CHOICE_H_
