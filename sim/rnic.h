#ifndef SIM_RNIC_H_
#define SIM_RNIC_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/buffer_pool.h"
#include "base/result.h"
#include "base/settings.h"
#include "llp/handshake.h"
#include "sim/cm/api.h"
#include "sim/cm/ports/queue_pair_ports.h"
#include "sim/cm/surroundings.h"
#include "sim/datagram/ports.h"
#include "sim/datagram/queue_pair.h"
#include "sim/device/device.h"
#include "sim/device/port_monitor.h"
#include "sim/device_faults.h"
#include "sim/memory/memory.h"
#include "sim/queue_pair/queue_pair.h"
#include "sim/queue_pair_table.h"
#include "sim/queues/adapter.h"
#include "sim/queues/any_queue_pair.h"
#include "sim/report.h"
#include "transport/network.h"

namespace weft::sim {

// The simulated RNIC: one for each process (Process()), or one for each simulated host in tests. Thread safe.
class Rnic final : public Adapter {
 public:
  // Uses the kernel's TCP. Made on first use, never destroyed. The child of a fork gets its own.
  static Rnic& Process();
  // `network` outlives the RNIC and everything made from it. `host_id` is the same for all Weft ends on one host.
  // Connections use `wire`; if it is null, the wire that WEFT_LLP selects.
  Rnic(transport::Network& network, const Settings& settings, uint64_t host_id, std::unique_ptr<llp::Wire> wire = nullptr);
  ~Rnic() override;

  // Sets how the connection manager finds the queue pair of an ibv_qp; called by the owner of struct ibv_qp.
  static void SetQueuePairResolver(QueuePairResolver resolver);
  static std::shared_ptr<QueuePair> QueuePairOf(ibv_qp* qp);

  std::shared_ptr<Pd> AllocatePd();
  MemoryTable& memory() override { return memory_; }
  // Deregisters the region and makes every stream release it. After return no byte of it is touched. Errors: see
  // MemoryTable::Deregister.
  int DeregisterMemory(ddp::STag stag);
  // See MemoryTable::Reregister. After return no byte of the old memory is touched.
  Result<RegionInfo, int> ReregisterMemory(ddp::STag stag, Pd& pd, uint64_t address, uint64_t length, uint64_t offset, int access);
  // Like DeregisterMemory, for a memory window.
  void DeallocateWindow(ddp::STag stag);
  // Errors: ENOMEM (no number is left).
  Result<std::shared_ptr<QueuePair>, int> CreateQueuePair(QueuePairOptions options);
  // `max_wr`, `max_sge`: see SharedReceiveQueue.
  std::shared_ptr<SharedReceiveQueue> CreateSharedReceiveQueue(std::shared_ptr<Pd> pd, uint32_t max_wr, uint32_t max_sge,
                                                               std::shared_ptr<AsyncSink> async, void* owner,
                                                               std::shared_ptr<CompletionQueue> completions = nullptr);
  // The same for unreliable datagrams. Also returns the errors of opening a UDP socket (EMFILE ...).
  Result<std::shared_ptr<DatagramQueuePair>, int> CreateDatagramQueuePair(DatagramOptions options);
  CmApi& cm() { return *cm_; }
  PortMonitor& ports() { return ports_; }
  QueuePairPorts& queue_pair_ports() { return *queue_pair_ports_; }

  void OnExit();  // the process ends

  // Adapter
  transport::Network& network() override { return network_; }
  BufferPool& pool() override { return pool_; }
  const Settings& settings() const override { return settings_; }
  uint64_t host_id() const override { return host_id_; }
  void ForgetQueuePair(uint32_t number) override;
  Lent ForgetRegion(const RegionInfo& gone, const AnyQueuePair* but = nullptr) override;

  std::vector<std::shared_ptr<AnyQueuePair>> QueuePairs();
  // Failures injected by faults.
  DeviceFaults& device_faults() { return *device_faults_; }
  void ApplyFaults();

 private:
  void TakeBack(const RegionInfo& gone);

  void ServeProcess();  // the control socket, and the summary at exit
  Snapshots StateOfAll();
  std::string Summary();

  transport::Network& network_;
  const Settings settings_;
  const uint64_t host_id_;
  BufferPool pool_;
  MemoryTable memory_;
  PortMonitor ports_;
  const std::unique_ptr<llp::Wire> wire_;
  std::unique_ptr<CmApi> cm_;
  std::unique_ptr<QueuePairPorts> queue_pair_ports_;
  std::atomic<uint32_t> next_pd_{1};
  std::atomic<uint32_t> next_srq_{0};
  DatagramPorts datagram_ports_;

  const std::shared_ptr<DeviceFaults> device_faults_;
  std::shared_ptr<void> control_;  // control::Server

  std::mutex mutex_;  // guards the members below
  QueuePairTable queue_pairs_;
  Snapshots gone_;  // only with WEFT_STATS=1
  uint32_t next_number_ = 2;  // 0 and 1 are special on InfiniBand, and programs print them as such
};

}  // namespace weft::sim

#endif  // SIM_RNIC_H_
