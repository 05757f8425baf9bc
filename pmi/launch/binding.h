#ifndef PMI_LAUNCH_BINDING_H_
#define PMI_LAUNCH_BINDING_H_

#include <hwloc.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "pmi/error.h"
#include "pmi/launch/binding_request.h"

namespace weft::pmi {

struct CpuSetDeleter {
  void operator()(hwloc_bitmap_t set) const { hwloc_bitmap_free(set); }
};
using CpuSet = std::unique_ptr<hwloc_bitmap_s, CpuSetDeleter>;  // CPUs, as the system numbers them

struct TopologyDeleter {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyDeleter>;

// The places that a request makes of a machine, at least one: the host's first rank has the first, and so on; after the
// last the first comes again. Only CPUs of `topology`. An error: user:LIST names a CPU that is not there.
//
// For -map-by the machine falls into domains, which take a rank each in turn; within a domain ranks get one group of
// -bind-to after the other. Two sockets of two cores, -bind-to core -map-by socket:  socket 0: rank 0, rank 2;  socket
// 1: rank 1, rank 3.
Result<std::vector<CpuSet>, PmiError> PlacesOf(hwloc_topology_t topology, const BindingRequest& request);

// Gives the calling thread CPUs, which what it forks inherits; its own come back when this object goes.
class Binder {
 public:
  // This host, as far as this thread may use it (cpusets of containers, taskset). An error says why nothing can be
  // bound here.
  static Result<std::unique_ptr<Binder>, PmiError> OfThisHost();
  ~Binder();
  Binder(const Binder&) = delete;
  Binder& operator=(const Binder&) = delete;

  // Before Bind(). What is wrong with the request on this host, or empty.
  std::string Choose(const BindingRequest& request);
  // The place of the rank `index` of this host, from 0 on. Why it cannot be had, or empty.
  std::string Bind(size_t index);
  // The thread has its own CPUs again, until the next Bind().
  void Unbind();

 private:
  Binder(Topology topology, CpuSet own) : topology_(std::move(topology)), own_(std::move(own)) {}

  const Topology topology_;
  const CpuSet own_;
  std::vector<CpuSet> places_;
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_BINDING_H_
