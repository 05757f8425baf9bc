#include "impi/job/announcement.h"

#include <array>

#include "base/byte_writer.h"

namespace weft::impi {
namespace {

void Append(Bytes& values, uint32_t number) {
  std::array<uint8_t, sizeof number> bytes;
  ByteWriter(bytes).U32(number);
  values.insert(values.end(), bytes.begin(), bytes.end());
}

void Append(Bytes& values, int64_t number) {
  std::array<uint8_t, sizeof number> bytes;
  ByteWriter(bytes).U64(static_cast<uint64_t>(number));
  values.insert(values.end(), bytes.begin(), bytes.end());
}

void Append(Bytes& values, const HostId& host) { values.insert(values.end(), host.begin(), host.end()); }

Collected OfNumber(Label label, uint32_t number) {
  Collected collected{label, 0, {}};
  Append(collected.values, number);
  return collected;
}

}  // namespace

std::vector<Collected> Announcement::ToLabels() const {
  Collected addresses{Label::kHostAddress, 0, {}}, ports{Label::kHostPort, 0, {}}, counts{Label::kHostProcesses, 0, {}};
  Collected ack_marks{Label::kHostAckMark, 0, {}}, high_waters{Label::kHostHighWater, 0, {}};
  Collected process_addresses{Label::kProcessAddress, 0, {}}, process_numbers{Label::kProcessNumber, 0, {}};
  uint32_t processes = 0;
  for (const HostAnnouncement& host : hosts) {
    const auto count = static_cast<uint32_t>(host.processes.size());
    processes += count;
    Append(addresses.values, host.address);
    Append(ports.values, host.port);
    Append(counts.values, count);
    Append(ack_marks.values, host.ack_mark);
    Append(high_waters.values, host.high_water);
    for (const ProcessName& process : host.processes) {
      Append(process_addresses.values, process.host);
      Append(process_numbers.values, process.number);
    }
  }
  return {{Label::kVersion, 0, Bytes(2 * sizeof(uint32_t))},
          OfNumber(Label::kHosts, static_cast<uint32_t>(hosts.size())),
          OfNumber(Label::kProcesses, processes),
          OfNumber(Label::kDataLength, data_length),
          OfNumber(Label::kTagUpperBound, static_cast<uint32_t>(tag_upper_bound)),
          OfNumber(Label::kCrossoverSize, static_cast<uint32_t>(crossover_size)),
          OfNumber(Label::kMaxLinear, static_cast<uint32_t>(max_linear)),
          addresses,
          ports,
          counts,
          ack_marks,
          high_waters,
          process_addresses,
          process_numbers};
}

}  // namespace weft::impi
