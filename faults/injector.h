#ifndef FAULTS_INJECTOR_H_
#define FAULTS_INJECTOR_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "faults/plan.h"
#include "transport/socket_address.h"

namespace weft::faults {

extern std::atomic<uint32_t> g_kinds;  // a bit for each kind that the plan has; the highest when a port or device is down
// Whether there are faults at all, or of a kind. What everybody asks first; without faults it is one load and one predictable branch.
inline bool Enabled() { return g_kinds.load(std::memory_order_relaxed) != 0; }
inline bool Enabled(Kind kind) { return g_kinds.load(std::memory_order_relaxed) & 1u << static_cast<unsigned>(kind); }

// Where something can fail. What is not known there stays unset, and a fault that selects by it does not match.
struct Place {
  std::optional<uint32_t> qp;
  const transport::SocketAddress* peer = nullptr;
  std::optional<int> opcode;
  const char* device = nullptr;
  std::optional<Call> call;
  std::optional<int> event;
};

// A fault of the plan in force, with its counts.
struct ActiveFault {
  Fault fault;
  std::mt19937_64 random;
  uint64_t occasions = 0;
  uint64_t injected = 0;
  std::chrono::steady_clock::time_point set_at;
};

// Told after each change of the plan, without locks, on the thread that changed it.
class PlanObserver {
 public:
  virtual ~PlanObserver() = default;
  virtual void OnPlanChanged() = 0;
};

// The faults of this process. Thread safe.
class Injector {
 public:
  // Of WEFT_FAULTS, read on first use; never destroyed.
  static Injector& Process();
  // What is wrong with WEFT_FAULTS; empty: nothing. Of one or more lines.
  const std::string& problem() const { return problem_; }

  // Replaces the plan. Counts begin anew. Observers are told.
  void Set(Plan plan);
  void Clear() { Set({}); }
  // One line for each fault: its text and counts.
  std::string Show() const;
  uint64_t seed() const;

  // An occasion for faults of this kind: the first one that matches and is due, counted and logged; `where` goes into the log line.
  std::optional<Fault> Ask(Kind kind, const Place& place, const std::string& where);
  // As Ask(), but every fault of the plan of this kind that matches, without the log line: the caller says when it strikes.
  std::vector<std::shared_ptr<ActiveFault>> Choose(Kind kind, const Place& place);
  // Faults of a kind that strike by themselves.
  std::vector<std::shared_ptr<ActiveFault>> All(Kind kind) const;
  // Counts and logs a fault that strikes; false: it has struck times= times already.
  bool Strike(ActiveFault& fault, const std::string& where);
  // Whether the plan has such a fault for this place, whatever its triggers; counts nothing.
  bool Has(Kind kind, const Place& place) const;
  // From 0 to 1, of the fault's own generator.
  double Draw(ActiveFault& fault);

  void AddObserver(std::weak_ptr<PlanObserver> observer);

 private:
  Injector() = default;
  bool Due(ActiveFault& active);  // with mutex_
  void Log(const ActiveFault& active, const std::string& where) const;

  std::string problem_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<std::shared_ptr<ActiveFault>> active_;
  uint64_t seed_ = 0;
  std::vector<std::weak_ptr<PlanObserver>> observers_;
};

// The errno of a verb that is to fail; 0: it is not. For the entry points of verbs, after Enabled().
int FailureOf(Call call, const char* device, std::optional<uint32_t> qp = std::nullopt, std::optional<int> opcode = std::nullopt);

// Ports that port_down or device_fatal holds down, by device. Asked by whoever shows a port's state, and by streams.
bool PortIsDown(const char* device);
void SetPortDown(const std::string& device, bool down);
// Devices that failed for good.
bool DeviceIsDead(const char* device);
void SetDeviceDead(const std::string& device);

}  // namespace weft::faults

#endif  // FAULTS_INJECTOR_H_
