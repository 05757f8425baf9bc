#ifndef IMPI_MESSAGE_DEPARTURES_H_
#define IMPI_MESSAGE_DEPARTURES_H_

#include <cstdint>
#include <span>

#include "impi/message/types.h"

// How packets differ for a LAM/MPI 7.1.4, as its own were seen to be:
//
//   pk_seqnum   numbers the packets of all types, from 1, and not the messages
//   packets without data: pk_len and pk_msglen 128, pk_lsrank, pk_tag and pk_count -1; of pk_cid, which LAM leaves as it happens to be, 0
//   FINI        pk_src and pk_dest: host 0, process -1
//
// What is received needs no difference: of a packet without data, Packet::Parse ignores these fields.
namespace weft::impi {

// `number`: of the packet, for LAM.
void SerializeFor(Peer peer, Packet packet, uint64_t number, std::span<uint8_t, Packet::kSize> into);
// FINI, which an agent sends when its processes need the channel no more (section 3.8).
Packet FiniFor(Peer peer);

}  // namespace weft::impi

#endif  // IMPI_MESSAGE_DEPARTURES_H_
