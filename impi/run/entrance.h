#ifndef IMPI_RUN_ENTRANCE_H_
#define IMPI_RUN_ENTRANCE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "impi/entry/reception.h"
#include "pmi/launch/event_poller.h"

namespace weft::impi {

// Where the processes of a host reach its agent.
struct AgentListener {
  Descriptor fd;        // a Unix stream socket that does not block
  std::string address;  // the value of kAgentVariable

  // Why not: a sentence.
  static Result<AgentListener, std::string> Open();
};

// The sockets of processes that come in, from the listener until a Reception has let them in or refused them. It accepts no more of them than Reception
// has room for, and none for a moment when there are no descriptors.
class Entrance {
 public:
  using Time = Reception::Time;
  struct Hooks {
    std::function<void(const Reception::Guest&, Descriptor)> let_in;
    std::function<void(const std::string&)> warn;  // of one that was refused, or has to wait
    std::function<void()> no_room;                 // nothing can be watched: errno
  };

  // `ranks`: as for Reception. `poller` outlives it.
  Entrance(std::vector<int32_t> ranks, AgentListener listener, pmi::EventPoller& poller, Hooks hooks);

  void Open();
  // Nobody comes in any more; those that have not said who they are hear the end.
  void Close();
  // When OnTime has something to do.
  std::optional<Time> deadline() const;
  void OnTime(Time now);
  bool HasCome(size_t place) const { return reception_.HasCome(place); }

 private:
  void Accept();
  void ReadHello(Reception::Connection connection, int fd);
  // What Reception has decided.
  void Attend();
  void WatchListener();

  Reception reception_;
  AgentListener listener_;
  pmi::EventPoller& poller_;
  const Hooks hooks_;
  bool listening_ = false;
  std::optional<Time> pauses_until_;
  std::map<Reception::Connection, Descriptor> strangers_;  // they have not said their rank
  Reception::Connection next_ = 0;
};

}  // namespace weft::impi

#endif  // IMPI_RUN_ENTRANCE_H_
