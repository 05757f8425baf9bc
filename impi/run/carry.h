#ifndef IMPI_RUN_CARRY_H_
#define IMPI_RUN_CARRY_H_

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "impi/agent/agent.h"
#include "impi/job/job.h"
#include "impi/run/entrance.h"

namespace weft::impi {

// The sockets of an Agent, in one thread, until its job ends: those of the other hosts, and those of the processes of this host, which come in at a listener.
// A round costs as much as there are ready sockets, not open ones.
class Carrier {
 public:
  struct Setup {
    Agent::Setup agent;
    std::vector<int32_t> ranks;                     // of the processes of this host, in their client, in the order of the job
    Bytes welcome;                                  // what they are told (Welcome::Serialize)
    std::function<void(const std::string&)> warn;   // hears of strangers
    ssize_t (*send_message)(int, const msghdr*, int) = sendmsg;  // or a test's
  };

  // `job` outlives it. `hosts`: a socket of each host of other clients.
  Carrier(const Job& job, Setup setup, std::map<HostRank, Descriptor> hosts, AgentListener listener);
  ~Carrier();
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  // What is watched beside the packets, such as the connection to the server: `look` is called when it can be read, and may call what follows. Without
  // descriptors for it, the job fails.
  void Watch(int fd, std::function<void()> look);
  // The job has failed for a reason of the owner's.
  void Fail(std::string why);
  // mpiexec has ended: no process comes any more. `how`: behind the name of a process that has not called MPI_Init, if there is one.
  void NoMoreProcesses(const std::string& how);

  // Returns nothing if the job ended in order, or why it did not. Others hear of that when the connections are closed.
  std::optional<std::string> Run();
  // Closes all connections. The destructor does so, too.
  void Close();
  // Closes those of the processes of this host only.
  void CloseProcesses();
  // After Run: a process of this host is why the job failed.
  bool FailedByProcess() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::impi

#endif  // IMPI_RUN_CARRY_H_
