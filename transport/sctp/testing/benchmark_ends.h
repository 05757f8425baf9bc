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

// What the programs that measure SCTP between two processes have in common. Whatever is wrong ends the process, with a
// message. How SCTP is to be is the user's to say (WEFT_SCTP_...), but for the addresses.
namespace weft::transport::sctp {

// Of error messages; said first.
void SetProgramName(const char* name);
[[noreturn]] void Fail(const std::string& what);

// "ADDRESS,ADDRESS".
std::vector<SocketAddress> ParseAddresses(const std::string& list, uint16_t port);

// SCTP of this process, over UDP or in IP.
Sctp& OpenSctp(bool native);

// Settings of both ends, from the environment.
Settings EndSettings(const std::vector<SocketAddress>& addresses);

// Listens at `addresses`, prints "port P udp U", and gives each association to `take`, on the network's thread, for
// ever.
[[noreturn]] void Serve(const std::vector<SocketAddress>& addresses, bool native,
                        std::function<void(std::unique_ptr<Association>)> take);
// To where Serve() said: "ADDRESS,ADDRESS:P:U".
std::unique_ptr<Association> ConnectTo(Sctp& sctp, const std::string& where, bool native, const Settings& settings);

// Wakes a thread that waits for what an association receives, and leaves the receiving to it.
class Bell : public ReadyHandler {
 public:
  explicit Bell(Association& association) : association_(association) {}
  void OnReady(Interest) override;
  // Until it rings, or a tenth of a second went by.
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
