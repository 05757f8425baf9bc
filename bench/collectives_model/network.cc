#include "bench/collectives_model/network.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

namespace weft::bench {
namespace {

struct Counter {
  int64_t messages = 0, bytes = 0;
  void Add(int64_t length) {
    ++messages;
    bytes += length;
  }
};

class Simulation {
 public:
  Simulation(const Network& network, std::span<const int> host_of, std::span<const Program> programs);
  std::optional<Outcome> Run();

 private:
  struct Event {
    enum class Kind : uint8_t { kResume, kLeave, kFirstByte, kArrive };

    double time = 0;
    uint64_t number = 0;  // events of the same time come in the order in which they were made
    Kind kind = Kind::kResume;
    int from = 0, to = 0;  // ranks; kResume: `to`
    int64_t bytes = 0;

    bool operator>(const Event& other) const { return time != other.time ? time > other.time : number > other.number; }
  };
  struct Rank {
    size_t next = 0;          // action
    bool is_running = false;  // it does not wait for messages
    int pending = 0;          // messages of this round
    double ready = 0;         // when the last of its messages has completed
    double busy = 0;          // when its processor is free again
    Counter sent, received;
  };
  struct Host {
    double outgoing = 0, incoming = 0, memory = 0;  // when each is free again
    std::vector<double> processors;                 // likewise; empty: one for each rank
    Counter sent, received;
  };

  void Add(Event::Kind kind, double time, int from, int to, int64_t bytes) {
    events_.push({time, number_++, kind, from, to, bytes});
  }
  Rank& rank(int number) { return ranks_[static_cast<size_t>(number)]; }
  Host& HostOf(int number) { return hosts_[static_cast<size_t>(host_of_[static_cast<size_t>(number)])]; }
  bool ShareHost(const Event& message) const {
    return host_of_[static_cast<size_t>(message.from)] == host_of_[static_cast<size_t>(message.to)];
  }
  double MessageCpu(bool in_host) const { return in_host ? network_.host_message_cpu_us : network_.message_cpu_us; }

  // The rank's processor works for `us` from `time` on, as soon as it is free. Returns when it has done so.
  double Work(int number, double time, double us);
  // `*free` is when a link is free. Returns when the last of `bytes` has passed it.
  static double Pass(double* free, double time, int64_t bytes, double gbit) {
    return *free = std::max(*free, time) + static_cast<double>(bytes) * 8 / (gbit * 1000);
  }

  void Resume(int number, double now);
  // What several ranks have in common is given to them in the order of time.
  bool IsShared(const Action& action) const {
    return action.kind == Action::Kind::kCopy || (network_.processors > 0 && action.kind != Action::Kind::kReceive &&
                                                  action.kind != Action::Kind::kEndOfRound);
  }
  double Do(int number, const Action& action, double time);
  // How many messages from `from` arrived at `to` before their receives; negative: receives that wait.
  int& Early(int from, int to) { return early_[static_cast<uint64_t>(from) << 32 | static_cast<uint32_t>(to)]; }
  void Leave(const Event& message);
  void FirstByte(const Event& message);
  void Arrive(const Event& message);
  void Complete(int number, double time);
  std::optional<Outcome> Sum() const;

  const Network& network_;
  const std::span<const int> host_of_;
  const std::span<const Program> programs_;
  std::vector<Rank> ranks_;
  std::vector<Host> hosts_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t number_ = 0;
  std::unordered_map<uint64_t, int> early_;
};

Simulation::Simulation(const Network& network, std::span<const int> host_of, std::span<const Program> programs)
    : network_(network), host_of_(host_of), programs_(programs), ranks_(programs.size()) {
  hosts_.resize(static_cast<size_t>(*std::max_element(host_of.begin(), host_of.end())) + 1);
  for (Host& host : hosts_) host.processors.resize(static_cast<size_t>(network.processors));
}

std::optional<Outcome> Simulation::Run() {
  for (int number = 0; number < static_cast<int>(ranks_.size()); ++number) {
    Add(Event::Kind::kResume, 0, number, number, 0);
  }
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    switch (event.kind) {
      case Event::Kind::kResume:
        Resume(event.to, event.time);
        break;
      case Event::Kind::kLeave:
        Leave(event);
        break;
      case Event::Kind::kFirstByte:
        FirstByte(event);
        break;
      case Event::Kind::kArrive:
        Arrive(event);
        break;
    }
  }
  return Sum();
}

double Simulation::Work(int number, double time, double us) {
  std::vector<double>& processors = HostOf(number).processors;
  double start = std::max(time, rank(number).busy);
  if (processors.empty()) return rank(number).busy = start + us;
  const auto first = std::min_element(processors.begin(), processors.end());
  start = std::max(start, *first);
  return *first = rank(number).busy = start + us;
}

void Simulation::Resume(int number, double now) {
  Rank& rank = this->rank(number);
  const Program& program = programs_[static_cast<size_t>(number)];
  double time = std::max(now, rank.busy);
  rank.is_running = true;
  while (rank.next < program.size()) {
    const Action& action = program[rank.next];
    if (time > now && IsShared(action)) return Add(Event::Kind::kResume, time, number, number, 0);
    ++rank.next;
    if (action.kind == Action::Kind::kEndOfRound) {
      if (rank.pending > 0) break;
      time = std::max(time, rank.ready);
    } else {
      time = Do(number, action, time);
    }
  }
  rank.is_running = false;
  rank.ready = std::max(rank.ready, time);
}

double Simulation::Do(int number, const Action& action, double time) {
  switch (action.kind) {
    case Action::Kind::kSend: {
      ++rank(number).pending;
      const Event message{0, 0, {}, number, action.peer, action.bytes};
      time = Work(number, time, MessageCpu(ShareHost(message)));
      Add(Event::Kind::kLeave, time, number, action.peer, action.bytes);
      return time;
    }
    case Action::Kind::kReceive:
      if (Early(action.peer, number)-- <= 0) ++rank(number).pending;
      return time;
    case Action::Kind::kCopy:
      return rank(number).busy = Pass(&HostOf(number).memory, time, action.bytes, network_.memory_gbit);
    case Action::Kind::kReduce:
      return Work(number, time, static_cast<double>(action.bytes) * network_.reduce_ns_per_byte / 1000);
    case Action::Kind::kEndOfRound:
      return time;
  }
  return time;
}

void Simulation::Leave(const Event& message) {
  Host& host = HostOf(message.from);
  rank(message.from).sent.Add(message.bytes);
  if (ShareHost(message)) {
    const double end = Pass(&host.memory, message.time, message.bytes, network_.memory_gbit);
    Add(Event::Kind::kArrive, end + network_.host_latency_us, message.from, message.to, message.bytes);
    return Complete(message.from, end);
  }
  host.sent.Add(message.bytes);
  const double start = std::max(host.outgoing, message.time);
  const double end = Pass(&host.outgoing, message.time, message.bytes, network_.link_gbit);
  Add(Event::Kind::kFirstByte, start + network_.latency_us, message.from, message.to, message.bytes);
  Complete(message.from, end);
}

void Simulation::FirstByte(const Event& message) {
  const double end = Pass(&HostOf(message.to).incoming, message.time, message.bytes, network_.link_gbit);
  Add(Event::Kind::kArrive, end, message.from, message.to, message.bytes);
}

void Simulation::Arrive(const Event& message) {
  const bool in_host = ShareHost(message);
  rank(message.to).received.Add(message.bytes);
  if (!in_host) HostOf(message.to).received.Add(message.bytes);
  const double time = Work(message.to, message.time, MessageCpu(in_host));
  if (Early(message.from, message.to)++ < 0) Complete(message.to, time);
}

void Simulation::Complete(int number, double time) {
  Rank& rank = this->rank(number);
  rank.ready = std::max(rank.ready, time);
  if (--rank.pending == 0 && !rank.is_running) Add(Event::Kind::kResume, rank.ready, number, number, 0);
}

template <typename Ends>
void Largest(const std::vector<Ends>& ends, int64_t* messages, int64_t* bytes) {
  for (const Ends& end : ends) {
    *messages = std::max({*messages, end.sent.messages, end.received.messages});
    *bytes = std::max({*bytes, end.sent.bytes, end.received.bytes});
  }
}

std::optional<Outcome> Simulation::Sum() const {
  Outcome outcome;
  for (size_t number = 0; number < ranks_.size(); ++number) {
    const Rank& rank = ranks_[number];
    if (rank.pending != 0 || rank.next != programs_[number].size()) return std::nullopt;
    outcome.us = std::max(outcome.us, rank.ready);
  }
  for (const auto& [pair, early] : early_) {
    if (early != 0) return std::nullopt;
  }
  Largest(hosts_, &outcome.host_messages, &outcome.host_bytes);
  Largest(ranks_, &outcome.rank_messages, &outcome.rank_bytes);
  return outcome;
}

}  // namespace

std::optional<Outcome> CarryOut(const Network& network, std::span<const int> host_of,
                                std::span<const Program> programs) {
  return Simulation(network, host_of, programs).Run();
}

}  // namespace weft::bench
