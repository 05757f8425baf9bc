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

extern std::atomic<uint32_t> g_kinds;  // one bit for each kind in the plan; the highest if a port or device is down
// Whether there are any faults, or faults of a kind. Checked first everywhere: without faults it costs one load and one
// predictable branch.
inline bool Enabled() { return g_kinds.load(std::memory_order_relaxed) != 0; }
inline bool Enabled(Kind kind) { return g_kinds.load(std::memory_order_relaxed) & 1u << static_cast<unsigned>(kind); }

// Where something can fail. A property that is unknown there stays unset; a fault that selects by it does not match.
struct Place {
  std::optional<uint32_t> qp;
  const transport::SocketAddress* peer = nullptr;
  std::optional<int> opcode;
  const char* device = nullptr;
  std::optional<Call> call;
  std::optional<int> event;
};

// A fault of the current plan, with its counts.
struct ActiveFault {
  Fault fault;
  std::mt19937_64 random;
  uint64_t occasions = 0;
  uint64_t injected = 0;
  std::chrono::steady_clock::time_point set_at;
};

// Called after each change of the plan, without locks, on the thread that changed it.
class PlanObserver {
 public:
  virtual ~PlanObserver() = default;
  virtual void OnPlanChanged() = 0;
};

// The faults of this process. Thread safe.
class Injector {
 public:
  // The injector for WEFT_FAULTS, which is read on first use. Never destroyed.
  static Injector& Process();
  // The error in WEFT_FAULTS, one or more lines; empty: none.
  const std::string& problem() const { return problem_; }

  // Replaces the plan, resets the counts, and calls the observers.
  void Set(Plan plan);
  void Clear() { Set({}); }
  // One line for each fault: its text and its counts.
  std::string Show() const;
  uint64_t seed() const;

  // To be called where faults of this kind can strike. Returns the first fault that matches and is due, and counts and
  // logs it; `where` appears in the log line.
  std::optional<Fault> Ask(Kind kind, const Place& place, const std::string& where);
  // Like Ask(), but returns every matching fault of this kind in the plan, and does not log: the caller reports when it
  // strikes.
  std::vector<std::shared_ptr<ActiveFault>> Choose(Kind kind, const Place& place);
  // The faults of a kind that strikes by itself.
  std::vector<std::shared_ptr<ActiveFault>> All(Kind kind) const;
  // Counts and logs a fault that strikes. Returns false if it has already struck times= times.
  bool Strike(ActiveFault& fault, const std::string& where);
  // Whether the plan has such a fault for this place, regardless of its triggers. Counts nothing.
  bool Has(Kind kind, const Place& place) const;
  // A random number from 0 to 1, from the fault's own generator.
  double Draw(ActiveFault& fault);

  void AddObserver(std::weak_ptr<PlanObserver> observer);

 private:
  Injector() = default;
  bool Due(ActiveFault& active);  // requires mutex_
  void Log(const ActiveFault& active, const std::string& where) const;

  std::string problem_;
  mutable std::mutex mutex_;  // guards the members below
  std::vector<std::shared_ptr<ActiveFault>> active_;
  uint64_t seed_ = 0;
  std::vector<std::weak_ptr<PlanObserver>> observers_;
};

// The errno with which a verb must fail; 0: it does not fail. For the entry points of verbs, after Enabled().
int FailureOf(Call call, const char* device, std::optional<uint32_t> qp = std::nullopt, std::optional<int> opcode = std::nullopt);

// Whether port_down or device_fatal holds the port of the device down. Used to report a port's state, and by streams.
bool PortIsDown(const char* device);
void SetPortDown(const std::string& device, bool down);
// Whether the device has failed for good.
bool DeviceIsDead(const char* device);
void SetDeviceDead(const std::string& device);

}  // namespace weft::faults

#endif  // FAULTS_INJECTOR_H_
