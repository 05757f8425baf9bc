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

// Kinds of messages in an association, by payload protocol identifier. None is registered with IANA. They consist of
// the initials of "Weft MPI" and a number.
constexpr uint32_t kGreetingMessage = 0x574d5001;  // a Hello, followed by the first bytes of the first frame
constexpr uint32_t kWelcomeMessage = 0x574d5002;   // one byte: the greeting was read, and its proof is valid
constexpr uint32_t kFrameMessage = 0x574d5003;     // the next bytes of frames, on the stream of those frames
constexpr uint32_t kAnotherMessage = 0x574d5004;   // one byte: the greeting was read, and is for another process

// The association that carries the frames of one link, or that of a peer which has not yet proven who it is (no link).
//
// Each side sends one greeting before its first frame, in one message together with the part of the frame that fits.
// The greeting is a Hello (greeting.h) over the nonce that the peer has published. If the peer is not known yet and
// came through a port (process_table.h), it is over the nonce of the peer's greeting. Nothing else is sent before the
// peer's welcome, so that nothing can overtake the greeting on another stream. Until then the frame stays in the link's
// queue, so that nothing is lost if the association fails.
class SctpConnection final {
 public:
  using Bytes = std::span<uint8_t>;
  class Owner {
   public:
    // A peer without a link has proven who it is. True: the link is set now. False: the connection was destroyed.
    // `nonce`: of its greeting.
    virtual bool OnProven(SctpConnection& connection, ProcessId process, const Nonce& nonce) = 0;
    // The peer has proven who it is.
    virtual void OnOpen(SctpConnection& connection) = 0;
    // The connection has used its turn and has more to read or to write.
    virtual void OnTurnOver(SctpConnection& connection) = 0;

   protected:
    ~Owner() = default;
  };
  // All of these must outlive the connection.
  struct Setting {
    Owner& owner;
    ProcessTable& processes;
    uint64_t window;                                         // bytes of eager messages that this process stores
    std::span<const uint8_t, Challenge::kLength> challenge;  // of this process's card
    Bytes staging;  // memory for received data that has no place yet; shared, its contents are valid only during a call
  };

  // `up`: the association was accepted.
  SctpConnection(const Setting& setting, std::shared_ptr<Bell> bell, uint64_t number,
                 std::unique_ptr<transport::sctp::Association> association, bool up);
  ~SctpConnection();
  SctpConnection(const SctpConnection&) = delete;
  SctpConnection& operator=(const SctpConnection&) = delete;

  uint64_t number() const { return number_; }
  transport::sctp::Association& association() { return *association_; }
  // Null: the peer has not proven who it is.
  Link* link() const { return link_; }
  // The connection is, or will be, that of `link`. `nonce`: of the card or the greeting of its process.
  void SetLink(Link& link, const Nonce& nonce);
  bool has_greeted() const { return sent_ != Sent::kNothing; }
  // The peer has proven who it is; frames may arrive.
  bool is_open() const { return open_; }
  // Set when the connection has ended: an errno, or 0 for an orderly end. The owner then destroys it.
  std::optional<int> end() const { return end_; }

  // The bell has rung for this connection.
  void OnRing();
  // Both may complete requests and end the connection. They return whether anything moved.
  bool Read();
  bool Write();
  // Writes again if the association was full.
  bool WriteOn();
  // Transport::WriteAtOnce.
  size_t WriteAtOnce(std::span<const iovec> pieces, uint32_t flow);
  // Lets the bell ring when data arrives or there is space.
  void Listen();
  // From now on Read() and WriteOn() are called repeatedly, and the bell does not ring.
  void Lend();

  // Writes nothing more. The peer is told after it has received all that was written.
  void EndOutput();
  void Abort(const std::string& reason);

 private:
  enum class Sent : uint8_t {
    kNothing,
    kGreeting,
    kAll,  // the welcome has arrived
  };

  bool Send(uint32_t kind, size_t stream, std::span<const iovec> pieces);
  bool Greet();
  bool IsProven(const Bond& bond, std::span<const uint8_t, Hello::kLength> hello) const;
  bool OnMessage(const transport::sctp::Received& received);
  bool OnGreeting(std::span<const uint8_t> bytes, size_t stream);
  // Both sides know who the other is.
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
  Nonce greeted_by_{};                     // the nonce of this process's greeting
  std::optional<Bond> greeted_with_;       // the bond of the peer's proof; the peer may not know any other yet
  bool up_;
  size_t streams_ = 0;     // number of streams for sending; 0: not known yet
  bool listening_ = true;  // the bell rings
  bool lent_ = false;      // the bell does not ring meanwhile
  bool full_ = false;      // a message did not fit
  bool waits_turn_ = false;
  bool output_ended_ = false;
  Sent sent_ = Sent::kNothing;
  size_t offered_ = 0;  // bytes of frames that were sent with the greeting
  bool open_ = false;
  bool owes_welcome_ = false;
  bool turned_away_ = false;  // the greeting was for another process: its data is ignored
  std::optional<int> end_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_SCTP_CONNECTION_H_
