#ifndef PMI_LAUNCH_PORT_RANGE_H_
#define PMI_LAUNCH_PORT_RANGE_H_

namespace weft::pmi {

// TCP ports at which mpiexec and proxies may listen for proxies (MPIEXEC_PORT_RANGE). 0 to 0: any port.
struct PortRange {
  int first = 0;
  int last = 0;
  bool operator==(const PortRange&) const = default;
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_PORT_RANGE_H_
