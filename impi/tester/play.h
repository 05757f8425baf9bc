#ifndef IMPI_TESTER_PLAY_H_
#define IMPI_TESTER_PLAY_H_

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "impi/job/job.h"
#include "impi/tester/exchange.h"
#include "impi/tester/script.h"
#include "impi/wire/command.h"
#include "impi/wire/packet.h"

namespace weft::impi::tester {

// Carries out one script against an implementation of IMPI. No I/O and no clock: the owner carries bytes, and says what
// happened and what time it is. Connections have the names of the script.
//
// Nothing that the peer sends is trusted. Beside what the steps expect, each packet of a host is checked as it comes:
// its fields (wire/packet), its processes, hiwater, acknowledgements that nothing is due for, and what follows FINI.
class Play {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::chrono::seconds kPatience{10};     // of a step, if neither script nor user has another one
  static constexpr std::chrono::milliseconds kQuiet{200};  // so long nothing may come where a script expects nothing
  static constexpr size_t kMostWaiting = 32 << 20;         // bytes of a connection that no step has taken
  static constexpr size_t kMostTrace = 400;                // lines

  // What the owner does. No call may re-enter the play.
  class Owner {
   public:
    virtual ~Owner() = default;
    // To the server under test, or from a host of the tester to the host under test at `address` and `port`. OnOpened
    // or OnOpenFailed follows.
    virtual void Open(const std::string& connection, const HostId& address, uint16_t port) = 0;
    virtual void Send(const std::string& connection, const Bytes& bytes) = 0;
    // After what was sent. The connection is not spoken of any more.
    virtual void Close(const std::string& connection) = 0;
  };

  struct Setup {
    std::chrono::seconds patience = kPatience;
    std::vector<PlayedHost> hosts;  // with a client under test, by number
    bool sees_exit = true;          // OnExit follows when the implementation under test ends; if not, 'exits' holds
  };

  enum class State : uint8_t { kPlaying, kPassed, kFailed };
  struct Failure {
    int line = 0;
    std::string step;    // as it stands in the script
    std::string reason;  // a sentence, with what came
  };

  // `script` and `owner` outlive it.
  Play(const Script& script, Setup setup, Owner& owner, Time now);

  void OnOpened(const std::string& connection, Time now);
  void OnOpenFailed(const std::string& connection, const std::string& why, Time now);
  // The implementation under test connected with the tester's server, or with one of its hosts.
  void OnAccepted(const std::string& connection, Time now);
  void OnBytes(const std::string& connection, ByteSpan bytes, Time now);
  // The peer ended it, or it broke.
  void OnClosed(const std::string& connection, Time now);
  // The implementation under test ended: its exit status, or 128 and a signal.
  void OnExit(int status, Time now);
  // When OnTime has something to do.
  std::optional<Time> deadline() const;
  void OnTime(Time now);

  State state() const { return state_; }
  const Failure& failure() const { return failure_; }
  // What was sent and came, decoded, oldest first.
  const std::deque<std::string>& trace() const { return trace_; }
  // How many steps are done, of the script's steps.size().
  size_t done() const { return next_; }

 private:
  enum class Outcome : uint8_t { kDone, kWaits };
  struct Connection {
    enum class State : uint8_t { kNew, kOpening, kOpen, kEnded };
    State state = State::kNew;
    bool accepted = false;     // it came, and 'accept' was not yet carried out
    bool peer_closed = false;  // behind what waits in the reader
    CommandReader reader{kMostWaiting};
    // Of a host, when packets are exchanged.
    std::optional<Packet> begun;  // its data have not come whole
    bool fini_came = false, fini_taken = false;
  };
  struct Received {
    Packet packet;
    Bytes data;
  };
  using Pair = std::pair<int, int>;  // source and destination, ranks

  void Run(Time now);
  Outcome Try(const Step& step, Time now);
  Outcome TryOpen(const Step& step);
  Outcome TryHear(const Step& step);
  Outcome TryHearWords(const Step& step);
  Outcome TryClosed(const Step& step);
  Outcome TryExits(const Step& step);
  Outcome TryExchange(const Step& step, Time now);
  Outcome TrySend(const Step& step);
  Outcome TryExpect(const Step& step);
  Outcome TryHearFini(const Step& step);
  // The connection, open at this end; null: failed.
  Connection* OpenConnection(const Step& step);
  bool HasUnread(const Connection& connection) const { return connection.reader.waiting() != 0; }
  // What is expected on the connection has not come whole.
  Outcome WaitFor(Connection& connection);

  bool MakeJob(const std::string& why);
  void StartPackets();
  void TakePackets(const std::string& name, Connection& connection);
  void TakePacket(int host, Connection& connection, Packet packet, Bytes data);
  void SendPacket(int source, int destination, const Packet& packet, ByteSpan data,
                  const std::vector<Step::FieldValue>& fields, uint32_t type);
  void CheckNothingIsLeft();
  std::string NameOf(const ProcessName& process) const;

  void Fail(const std::string& reason);
  void TraceExchange(ByteSpan bytes, bool from_client);
  void Trace(const std::string& line);

  const Script& script_;
  const Setup setup_;
  Owner& owner_;
  State state_ = State::kPlaying;
  Failure failure_;
  size_t next_ = 0;  // step
  Time began_;       // the step
  bool tried_ = false;
  std::map<std::string, Connection> connections_;
  std::optional<int> exit_status_;
  std::optional<Exchange> exchange_;
  // For the trace of the exchange: what the client under test says, and what it hears. Words without a header come
  // first, the server's choice, and behind AUTH, the key if it is chosen.
  CommandReader said_{kMostWaiting}, heard_{kMostWaiting};
  size_t said_words_ = 0, heard_words_ = AuthChoice::kSize;
  std::optional<Job> job_;
  bool packets_ = false;  // connections of hosts carry packets
  std::map<Pair, std::deque<Received>> received_;
  std::map<Pair, int> acks_;             // PROTOACKs that came, by source and destination, and no step has taken
  std::map<Pair, uint32_t> unacked_in_;  // packets from the implementation under test
  std::map<Pair, uint32_t> unacked_out_;
  std::map<std::string, uint64_t> variables_;
  std::deque<std::string> trace_;
};

}  // namespace weft::impi::tester

#endif  // IMPI_TESTER_PLAY_H_
