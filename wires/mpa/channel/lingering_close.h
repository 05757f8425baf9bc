#ifndef WIRES_MPA_CHANNEL_LINGERING_CLOSE_H_
#define WIRES_MPA_CHANNEL_LINGERING_CLOSE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "transport/network.h"

namespace weft::mpa {

// Owns a socket from the end of its stream on: sends what remains (a Terminate, a rejection), then FIN, reads and discards until
// the peer closes too, so that the kernel does not answer late data with a reset that would destroy our last words. Gives up with
// a reset after kLingerLimit.
inline constexpr std::chrono::seconds kLingerLimit{2};

void CloseLingering(transport::Network& network, std::unique_ptr<transport::ByteStream> socket,
                    std::vector<uint8_t> last_words);

}  // namespace weft::mpa

#endif  // WIRES_MPA_CHANNEL_LINGERING_CLOSE_H_
