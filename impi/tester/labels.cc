#include "impi/tester/labels.h"

namespace weft::impi::tester {

std::optional<Label> FindLabel(const std::string& name) {
  using enum Label;
  for (const Label label :
       {kVersion, kHosts, kProcesses, kDataLength, kTagUpperBound, kCrossoverSize, kMaxLinear, kHostAddress, kHostPort,
        kHostProcesses, kHostAckMark, kHostHighWater, kProcessAddress, kProcessNumber}) {
    if (name == NameOf(label)) return label;
  }
  return std::nullopt;
}

}  // namespace weft::impi::tester
