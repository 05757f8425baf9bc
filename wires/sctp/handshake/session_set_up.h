#ifndef WIRES_SCTP_HANDSHAKE_SESSION_SET_UP_H_
#define WIRES_SCTP_HANDSHAKE_SESSION_SET_UP_H_

#include <memory>
#include <optional>

#include "ddp/sctp/set_up_data.h"
#include "llp/handshake.h"
#include "llp/reads.h"

namespace weft::sctp {

// What both sides say about themselves. Over SCTP either side may send first, so no message is needed to show that the
// initiator is ready.
inline llp::ReadParams ReadsOf(const llp::Proposal& ours) { return {.ird = ours.ird, .ord = ours.ord}; }
inline llp::WeftTrailer TrailerOf(const llp::Claims& claims) {
  const uint8_t refused = claims.option_refused ? llp::WeftTrailer::kOptionRefused : 0;
  return {.flags = static_cast<uint8_t>(claims.offers | refused), .host_id = claims.host_id};
}
inline std::optional<llp::Claims> ClaimsOf(const ddp::sctp::SetUpData& data) {
  if (!data.trailer) return std::nullopt;
  return llp::Claims{.host_id = data.trailer->host_id,
                     .offers = static_cast<uint8_t>(data.trailer->flags & llp::Claims::kOffers),
                     .option_refused = (data.trailer->flags & llp::WeftTrailer::kOptionRefused) != 0};
}
// Otherwise Serialize() leaves the trailer out.
inline bool HasRoomForTrailer(const ddp::sctp::SetUpData& data) {
  return data.program.size() + llp::WeftTrailer::kLength <= ddp::sctp::SetUpData::Room(data.reads.has_value());
}

// Calls the handler, as long as it exists.
inline std::function<void()> Ring(std::weak_ptr<transport::ReadyHandler> handler) {
  return [handler = std::move(handler)] {
    if (const auto alive = handler.lock()) alive->OnReady({.read = true, .write = true});
  };
}

}  // namespace weft::sctp

#endif  // WIRES_SCTP_HANDSHAKE_SESSION_SET_UP_H_
