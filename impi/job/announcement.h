#ifndef IMPI_JOB_ANNOUNCEMENT_H_
#define IMPI_JOB_ANNOUNCEMENT_H_

#include <cstdint>
#include <vector>

#include "impi/wire/command.h"
#include "impi/wire/packet.h"

namespace weft::impi {

// What a client says about itself with COLL (IMPI 0.0, section 2.3.5).
struct HostAnnouncement {
  HostId address{};
  uint32_t port = 0;        // its agent listens there
  uint32_t ack_mark = 0;    // packets: of a pair of processes, after which a protocol acknowledgement is due
  uint32_t high_water = 0;  // packets: of a pair of processes, that may be without acknowledgement
  std::vector<ProcessName> processes;

  bool operator==(const HostAnnouncement&) const = default;
};

struct Announcement {
  static constexpr int32_t kDefault = -1;  // of crossover_size and max_linear: the user chose nothing

  uint32_t data_length = 0;  // bytes, of the user's data in a packet
  int32_t tag_upper_bound = 0;
  int32_t crossover_size = kDefault;  // bytes, from which on collective operations are long
  int32_t max_linear = kDefault;      // hosts, from which on collective operations are logarithmic
  std::vector<HostAnnouncement> hosts;

  // All labels of version 0.0, in the order in which they are sent. The version is 0.0.
  std::vector<Collected> ToLabels() const;
  bool operator==(const Announcement&) const = default;
};

}  // namespace weft::impi

#endif  // IMPI_JOB_ANNOUNCEMENT_H_
