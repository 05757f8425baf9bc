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
using CpuSet = std::unique_ptr<hwloc_bitmap_s, CpuSetDeleter>;  // CPUs by the numbers of the system

struct TopologyDeleter {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyDeleter>;

// The places on a machine for a request, at least one. The first rank of the host gets the first place, and so on;
// after the last place, the first one is used again. Contains only CPUs of `topology`. An error: user:LIST names a CPU
// that does not exist.
//
// With -map-by the machine is divided into domains, which get a rank each in turn. Within a domain the ranks get one
// group of -bind-to after the other. Example: two sockets of two cores, -bind-to core -map-by socket. Socket 0 gets
// ranks 0 and 2, socket 1 gets ranks 1 and 3.
Result<std::vector<CpuSet>, PmiError> PlacesOf(hwloc_topology_t topology, const BindingRequest& request);

// Sets the CPUs of the calling thread, which forked processes inherit. The destructor restores the thread's own CPUs.
class Binder {
 public:
  // For this host, with the CPUs that this thread may use (cpusets of containers, taskset). An error tells why nothing
  // can be bound on this host.
  static Result<std::unique_ptr<Binder>, PmiError> OfThisHost();
  ~Binder();
  Binder(const Binder&) = delete;
  Binder& operator=(const Binder&) = delete;

  // Call it before Bind(). Returns why the request cannot be met on this host, or empty.
  std::string Choose(const BindingRequest& request);
  // Binds the thread to the place of the rank `index` of this host, counted from 0. Returns a description of the error,
  // or empty.
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
