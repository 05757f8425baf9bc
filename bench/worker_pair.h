#ifndef BENCH_WORKER_PAIR_H_
#define BENCH_WORKER_PAIR_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/control_channel.h"
#include "bench/job.h"

namespace weft::bench {

// A process that was started to be one end. The destructor kills it, by its id.
class WorkerProcess {
 public:
  // Failure: it cannot be started. `options`: for its command line. `environment`: NAME=VALUE, added to ours.
  WorkerProcess(const std::vector<std::string>& options, const std::vector<std::string>& environment);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  void Send(const Message& order) { control_->Send(order); }
  // The answer to the last message. Failure: an error, the end of the process, or no answer in time.
  Message Receive();
  Message Call(const Message& order);
  int fd() const { return control_->fd(); }  // readable when there is an answer
  // As in ps: R is running or waits for a CPU, S sleeps.
  char State() const;

 private:
  std::unique_ptr<ControlChannel> control_;
  pid_t pid_ = -1;
};

// Initiator and responder, two processes. Started on first use, and again after Reset, since a setting that the library
// reads once holds until the process ends. If pinned, each has one half of the CPUs. All functions throw Failure.
class WorkerPair {
 public:
  WorkerPair(std::string kind, bool pinned, std::vector<std::string> environment)
      : kind_(std::move(kind)), pinned_(pinned), environment_(std::move(environment)) {}

  // Connects; returns the seconds that the initiator took. The shapes may differ only in what each end opens for
  // itself.
  double Open(const Shape& initiator, const Shape& responder);
  void Close();
  // Combines the reports of both ends: the times of the initiator, and the CPU time and context switches of both.
  Sample Run(const Job& job);
  Sample Idle(double seconds);
  // Resident bytes of initiator and responder.
  std::pair<int64_t, int64_t> Resident();
  std::string VerbsLibrary();
  // Ends both processes.
  void Reset();

 private:
  void Start();
  // Sends the same order to both, and returns the answers of initiator and responder.
  std::pair<Message, Message> CallBoth(const Message& order);
  std::pair<Message, Message> ReceiveBoth();

  std::unique_ptr<WorkerProcess> StartEnd(int half) const;

  const std::string kind_;
  const bool pinned_;
  const std::vector<std::string> environment_;
  std::unique_ptr<WorkerProcess> initiator_, responder_;
};

}  // namespace weft::bench

#endif  // BENCH_WORKER_PAIR_H_
