#ifndef MPI_HYBRID_P2P_SCTP_CONNECTION_H_
#define MPI_HYBRID_P2P_SCTP_CONNECTION_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/job_secret.h"
#include "mpi_hybrid/p2p/engine/link.h"
#include "mpi_hybrid/p2p/greeting/greeting.h"
#include "mpi_hybrid/p2p/sctp/bell.h"
#include "transport/sctp/sctp.h"

namespace weft::mpi {

// What the messages of an association are, by their payload protocol identifier. None is registered with IANA; the
// first letters of "Weft MPI" and a number.
constexpr uint32_t kGreetingMessage = 0x574d5001;  // a Hello, and the first bytes of the first frame behind it
constexpr uint32_t kWelcomeMessage = 0x574d5002;   // one byte: the greeting was read, and proved what it says
constexpr uint32_t kFrameMessage = 0x574d5003;     // the next bytes of frames, on the stream of theirs
constexpr uint32_t kAnotherMessage = 0x574d5004;   // one byte: the greeting was read, and means another process than this one

// The association that carries one link's frames, or that of somebody who has not proven yet whose it is (a stranger:
// no link).
//
// Each side sends one greeting, in front of its first frame and in one message with what fits of it. It is a Hello
// (greeting.h) over the nonce that the other published, or, where the other is not known yet and came by a door
// (process_table.h), over the nonce of its greeting. Nothing else is sent before the other's welcome, so that
// nothing can overtake the greeting on another stream. Until then the frame stays in the link's queue, so that nothing
// is lost with an association that comes to nothing.
class SctpConnection final {
 public:
  using Bytes = std::span<uint8_t>;
  class Owner {
   public:
    // Somebody without a link has proven who he is. True: the link is set now; false: this was destroyed.
    // `nonce`: of his greeting.
    virtual bool OnProven(SctpConnection& connection, ProcessId process, const Nonce& nonce) = 0;
    // The peer has proven who it is.
    virtual void OnOpen(SctpConnection& connection) = 0;
    // It had its turn and has more to read or to write.
    virtual void OnTurnOver(SctpConnection& connection) = 0;

   protected:
    ~Owner() = default;
  };
  // All outlive it.
  struct Setting {
    Owner& owner;
    ProcessTable& processes;
    uint64_t window;                                         // bytes of eager messages that we store
    std::span<const uint8_t, Challenge::kLength> challenge;  // of our card
    Bytes staging;  // where what has no place yet is received; anyone's between calls
  };

  // `up`: it was accepted.
  SctpConnection(const Setting& setting, std::shared_ptr<Bell> bell, uint64_t number,
                 std::unique_ptr<transport::sctp::Association> association, bool up);
  ~SctpConnection();
  SctpConnection(const SctpConnection&) = delete;
  SctpConnection& operator=(const SctpConnection&) = delete;

  uint64_t number() const { return number_; }
  transport::sctp::Association& association() { return *association_; }
  // Null: a stranger.
  Link* link() const { return link_; }
  // It is to be, or is, with the process of `link`, of whose card or greeting `nonce` is.
  void SetLink(Link& link, const Nonce& nonce);
  bool has_greeted() const { return sent_ != Sent::kNothing; }
  // The peer has proven who it is; frames may come.
  bool is_open() const { return open_; }
  // Is over: an errno, or 0 for an end in order. The owner destroys it.
  std::optional<int> end() const { return end_; }

  // What the bell said.
  void OnRing();
  // Each may complete requests and end the connection; whether anything moved.
  bool Read();
  bool Write();
  // Writes again where it was full.
  bool WriteOn();
  // Transport::WriteAtOnce.
  size_t WriteAtOnce(std::span<const iovec> pieces, uint32_t flow);
  // Lets the bell ring when something comes, or there is room.
  void Listen();
  // Read() and WriteOn() are called over and over, without the bell.
  void Lend();

  // The peer is told, when it has all that was written, and no more is written.
  void EndOutput();
  void Abort(const std::string& reason);

 private:
  enum class Sent : uint8_t {
    kNothing,
    kGreeting,
    kAll,  // the welcome is here
  };

  bool Send(uint32_t kind, size_t stream, std::span<const iovec> pieces);
  bool Greet();
  bool IsProven(const Bond& bond, std::span<const uint8_t, Hello::kLength> hello) const;
  bool OnMessage(const transport::sctp::Received& received);
  bool OnGreeting(std::span<const uint8_t> bytes, size_t stream);
  // Both know who the other is.
  bool MayWrite() const { return sent_ == Sent::kAll && open_; }
  void OnWelcome();
  bool ReadRest(size_t stream);
  void SetStreams(size_t count);
  void OnEvent(const transport::sctp::Event& event);
  bool BreaksTheRules(const char* what);
  bool TurnAway();

  const Setting setting_;
  const uint64_t number_;
  const std::unique_ptr<transport::sctp::Association> association_;
  const std::shared_ptr<AssociationBell> bell_;
  Link* link_ = nullptr;
  uint8_t challenge_[Challenge::kLength];  // for the peer
  Nonce greeted_by_{};                     // the nonce of our greeting
  std::optional<Bond> greeted_with_;       // by which the peer proved itself: it may know no other of the two's yet
  bool up_;
  size_t streams_ = 0;     // on which we may send; 0: not known yet
  bool listening_ = true;  // the bell rings
  bool lent_ = false;      // ... but while this lasts
  bool full_ = false;      // what was to be sent did not fit
  bool waits_turn_ = false;
  bool output_ended_ = false;
  Sent sent_ = Sent::kNothing;
  size_t offered_ = 0;  // bytes of frames that went with the greeting
  bool open_ = false;
  bool owes_welcome_ = false;
  bool turned_away_ = false;  // it meant another: nothing that it says counts
  std::optional<int> end_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_SCTP_CONNECTION_H_
