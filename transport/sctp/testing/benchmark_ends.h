#ifndef TRANSPORT_SCTP_TESTING_BENCHMARK_ENDS_H_
#define TRANSPORT_SCTP_TESTING_BENCHMARK_ENDS_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "transport/sctp/sctp.h"

// Shared by the programs that measure SCTP between two processes. Every error ends the process with a message. The
// user's settings (WEFT_SCTP_...) apply, except for the addresses.
namespace weft::transport::sctp {

// For error messages; call first.
void SetProgramName(const char* name);
[[noreturn]] void Fail(const std::string& what);

// "ADDRESS,ADDRESS".
std::vector<SocketAddress> ParseAddresses(const std::string& list, uint16_t port);

// SCTP of this process, over UDP or directly over IP.
Sctp& OpenSctp(bool native);

// The settings of both ends, from the environment.
Settings EndSettings(const std::vector<SocketAddress>& addresses);

// Listens at `addresses`, prints "port P udp U", and gives each association to `take`, on the network's thread. Never
// returns.
[[noreturn]] void Serve(const std::vector<SocketAddress>& addresses, bool native,
                        std::function<void(std::unique_ptr<Association>)> take);
// Connects to an end that called Serve(): "ADDRESS,ADDRESS:P:U".
std::unique_ptr<Association> ConnectTo(Sctp& sctp, const std::string& where, bool native, const Settings& settings);

// Wakes a thread that waits for data of an association, and leaves receiving to it.
class Bell : public ReadyHandler {
 public:
  explicit Bell(Association& association) : association_(association) {}
  void OnReady(Interest) override;
  // Waits until it rings, or for 0.1 s.
  void Wait();

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  Association& association_;
  bool rung_ = false;
};

void PrintPaths(const Association& association);
void PrintPacketCounters();

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_TESTING_BENCHMARK_ENDS_H_
