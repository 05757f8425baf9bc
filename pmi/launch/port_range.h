#ifndef PMI_LAUNCH_PORT_RANGE_H_
#define PMI_LAUNCH_PORT_RANGE_H_

namespace weft::pmi {

// TCP ports where mpiexec and proxies may listen for proxies (MPIEXEC_PORT_RANGE). From 0 to 0: any.
struct PortRange {
  int first = 0;
  int last = 0;
  bool operator==(const PortRange&) const = default;
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_PORT_RANGE_H_
