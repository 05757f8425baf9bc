#ifndef IMPI_TESTER_EXCHANGE_H_
#define IMPI_TESTER_EXCHANGE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "impi/client/dialogue.h"
#include "impi/job/job.h"
#include "impi/server/rendezvous.h"
#include "impi/tester/script.h"

namespace weft::impi::tester {

// Where a host that the tester plays listens, and what its processes are called.
struct PlayedHost {
  HostId address{};
  uint16_t port = 0;
};

// The dialogue of section 2.3 when a client is tested: the tester is the server (server/rendezvous) and all other
// clients (client/dialogue), which speak with each other in memory. No I/O, no clock.
class Exchange final : public Rendezvous::Owner {
 public:
  using Time = Rendezvous::Time;

  // `hosts`: by the number of the host; that of the client under test is not looked at. `script` outlives it.
  Exchange(const Script& script, const std::vector<PlayedHost>& hosts, Time now);

  // What the client under test sent. What the server answers is in TakeOutput().
  void OnBytes(ByteSpan bytes, Time now);
  Bytes TakeOutput();
  // All clients have said all: the client under test, and each that is played, got DONE.
  bool is_over() const;
  // The server has closed the connection of the client under test, or a client that is played has failed. Why; empty:
  // neither.
  std::string failure() const;
  // When it is over: what the clients agreed on, as one that is played sees it. Why not: what is wrong with what they
  // said.
  Result<Job, std::string> TheJob() const;

  // Rendezvous::Owner
  void Send(Rendezvous::Connection connection, const Bytes& bytes) override;
  void Close(Rendezvous::Connection connection) override;
  void Warn(const std::string& text) override { warnings_ += (warnings_.empty() ? "" : "; ") + text; }

 private:
  static constexpr Rendezvous::Connection kUnderTest = 0;  // the played ones have 1 more than their number

  void Carry(Time now);

  const Script& script_;
  Rendezvous rendezvous_;
  std::map<Rendezvous::Connection, Dialogue> played_;
  std::map<Rendezvous::Connection, Bytes> to_played_;
  Bytes output_;
  bool closed_ = false;
  std::string warnings_;
};

// What a client that is played says about itself.
Announcement AnnouncementOf(const Script& script, int client, const std::vector<PlayedHost>& hosts);

}  // namespace weft::impi::tester

#endif  // IMPI_TESTER_EXCHANGE_H_
