#ifndef PMI_LAUNCH_PROXY_STARTER_H_
#define PMI_LAUNCH_PROXY_STARTER_H_

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/job_secret.h"
#include "pmi/error.h"
#include "pmi/launch/connection.h"
#include "pmi/launch/event_poller.h"
#include "pmi/launch/grow_order.h"
#include "pmi/launch/remote_start.h"

namespace weft::pmi {

// Starts a proxy on each of several hosts, and accepts their connections. Does not block: the owner waits for it
// together with other events. It forks, so no other thread may run.
class ProxyStarter {
 public:
  struct Host {
    std::string name;
    bool is_local = false;
    std::string own_address;  // address of this host for connections from that host; empty: not known
  };

  // Begins.
  ProxyStarter(const std::vector<Host>& hosts, const StartMeans& means, const JobSecret& secret);
  // If it is not done, the processes that were started end by themselves.
  ~ProxyStarter();
  ProxyStarter(const ProxyStarter&) = delete;
  ProxyStarter& operator=(const ProxyStarter&) = delete;

  // Readable when Step() has something to do. Step() must also be called at wake_at().
  int fd() const { return poller_.fd(); }
  std::chrono::steady_clock::time_point wake_at() const;
  void Step();
  // The owner has reaped a child. If a started process ended before its proxy connected, the attempt fails.
  void ChildEnded(pid_t pid, int status);

  bool done() const { return error_ || complete(); }
  const std::optional<LaunchError>& error() const { return error_; }
  std::string MissingHosts() const;  // separated by ", "
  // After success: in the order of the hosts.
  std::vector<ProxyLink> TakeLinks();

 private:
  using Clock = std::chrono::steady_clock;

  // A connection that has not identified itself yet.
  struct Greeting {
    int fd;
    std::string nonce;  // sent by this process
    std::string text;
    Clock::time_point since;
  };

  std::optional<LaunchError> StartLocal(ProxyLink* link);
  std::optional<LaunchError> StartRemote(size_t node, const std::string& own_address);
  std::optional<LaunchError> ListenForProxies();
  [[noreturn]] void RunRemoteShell(const std::string& host, int input);
  void AcceptConnections();
  bool GiveWay();
  bool Greet(Greeting& greeting);  // false: it has ended, with or without success
  void Admit(Greeting& greeting, const std::string& line);
  void Drop(const Greeting& greeting);
  bool complete() const;

  const StartMeans means_;
  const JobSecret secret_;
  const Clock::time_point deadline_;
  EventPoller poller_;
  std::vector<ProxyLink> links_;
  std::vector<int> inputs_;          // of the remote shells
  std::vector<Greeting> greetings_;  // oldest first
  Clock::time_point listen_again_{};
  int listener_ = -1;
  int port_ = 0;
  std::optional<LaunchError> error_;
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_PROXY_STARTER_H_
