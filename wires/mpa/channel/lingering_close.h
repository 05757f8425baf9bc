#ifndef WIRES_MPA_CHANNEL_LINGERING_CLOSE_H_
#define WIRES_MPA_CHANNEL_LINGERING_CLOSE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "transport/network.h"

namespace weft::mpa {

// Owns a socket after the end of its stream. Sends what remains (a Terminate, a rejection), then FIN. Then reads and
// discards until the peer closes too, so that the kernel does not answer late data with a reset, which would destroy
// our last message. Resets the connection after kLingerLimit.
inline constexpr std::chrono::seconds kLingerLimit{2};

void CloseLingering(transport::Network& network, std::unique_ptr<transport::ByteStream> socket,
                    std::vector<uint8_t> last_words);

}  // namespace weft::mpa

#endif  // WIRES_MPA_CHANNEL_LINGERING_CLOSE_H_
