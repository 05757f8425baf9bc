#ifndef CM_RSOCKET_STREAM_H_
#define CM_RSOCKET_STREAM_H_

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cm/rsocket/defaults.h"
#include "cm/rsocket/limits.h"
#include "cm/rsocket/link.h"
#include "cm/rsocket/rings.h"
#include "cm/rsocket/waiting_socket.h"
#include "cm/rsocket/wire.h"

namespace weft::rsocket {

// A stream rsocket (SOCK_STREAM): a listener, or one end of a connection.
//
// In the background, only the RNIC works for a socket: it places bytes in the receive buffer, and queues completions
// and events. Each call processes those (Drive). Locks, outermost first: send_mutex_ or receive_mutex_ (one sender and
// one receiver at a time, also while they wait), then mutex_ (held briefly; bytes are copied without it).
class Stream final : public WaitingSocket {
 public:
  explicit Stream(int domain);
  ~Stream() override;

  int type() const override { return SOCK_STREAM; }

  // stream.cc
  int Bind(const sockaddr* address, socklen_t length) override;
  int Listen(int backlog) override;
  int Accept(std::shared_ptr<Socket>* accepted) override;
  int Connect(const sockaddr* address, socklen_t length) override;
  int Shutdown(int how) override;
  bool Close() override;
  bool Linger() override;
  bool Farewell() override;
  int Name(bool peer, sockaddr_storage* name) override;

  // stream_data.cc
  ssize_t Send(const iovec* pieces, int count, int flags, const sockaddr* to, socklen_t to_length) override;
  ssize_t Receive(const iovec* pieces, int count, int flags, sockaddr_storage* from, int* out_flags) override;

  // stream_options.cc
  int SetOption(int level, int name, const void* value, socklen_t length) override;
  int GetOption(int level, int name, void* value, socklen_t* length) override;

  // stream_map.cc
  off_t Map(void* buffer, size_t length, int protection, off_t offset) override;
  int Unmap(void* buffer, size_t length) override;
  ssize_t WriteMapped(const void* from, size_t count, off_t offset, int flags) override;

 private:
  enum class State : uint8_t {
    kIdle,
    kBound,
    kListening,
    kResolving,   // rconnect: resolving address and route
    kConnecting,  // the request was sent
    kAccepting,   // raccept has answered; the peer has not confirmed
    kConnected,   // also after a close by either side or a loss, see below
    kFailed,      // rconnect has failed
  };

  // A mapping made by riomap.
  struct Mapping {
    ibv_mr* region = nullptr;
    uint64_t offset = 0;
    int index = -1;        // in the peer's map; -1: local only
    bool announced = false;
  };

  // All below with mutex_ held, unless they say otherwise.

  // stream.cc
  int MakeIdentifier();
  void DropIdentifier();
  bool TakeCmEvents();
  void OnCmEvent(const rdma_cm_event& event, const std::vector<uint8_t>& private_data);
  void OnRequest(rdma_cm_id* request, const std::vector<uint8_t>& private_data);
  void OnResolved();
  int MakeLink();
  bool Adopt(const ConnectData& peer);  // false: the data is not valid
  void FailConnect(int error);
  int TakeRequest(std::shared_ptr<Socket>* accepted);
  int AcceptRequest(rdma_cm_id* request, const ConnectData& peer);  // called for the new socket, without the lock
  bool StepOut();
  bool opening() const {
    return state_ == State::kResolving || state_ == State::kConnecting || state_ == State::kAccepting;
  }

  // stream_progress.cc: the connection
  //
  // Processes completions and events, and returns buffers to the peer.
  void Drive() override;
  void OnCompletion(const ibv_wc& completion);
  bool OnMessage(Message message);  // false: the peer violated the protocol
  void TakeTargets();
  void GiveCredits();
  int PostControl(Control control);
  void OnLost(int error);
  bool up() const { return state_ == State::kConnected && !lost_ && !said_goodbye_; }
  bool CanSend() const;
  int WhyNotWritable() const;  // 0: it may become writable
  // The ID of a work request's completion. It says what the completion releases.
  static uint64_t CompletionId(uint32_t slots, uint32_t bytes) { return uint64_t{slots} << 32 | bytes; }

  // stream_wait.cc
  bool Readable() const;
  bool Writable() const;
  bool Opened() const { return closing_ || !opening(); }
  bool HasRequest() const { return closing_ || !requests_.empty(); }
  bool HasControlSlot() const { return !up() || slots_free_ >= 1; }
  bool CanStepOut() const { return !opening() && ((up() && slots_free_ >= 1) || AllSent()); }
  bool AllSent() const { return lost_ || slots_free_ == sizes_.send_queue; }
  void Arm() override;
  void TakeEvents() override;
  short Events(short wanted) const override;
  int wait_fd() const override;

  // stream_data.cc
  int AwaitReadable(Lock& lock, int flags);
  int AwaitWritable(Lock& lock, int flags);

  // stream_map.cc
  int AnnounceMappings(Lock& lock, int flags);

  std::mutex send_mutex_;
  std::mutex receive_mutex_;

  // Guarded by mutex_:
  State state_ = State::kIdle;
  bool read_shut_ = false;     // rshutdown at this end
  bool write_shut_ = false;
  bool said_goodbye_ = false;  // kDisconnect was sent
  bool peer_done_ = false;     // the peer sends nothing more
  bool peer_gone_ = false;     // ... and receives nothing more
  bool lost_ = false;          // the connection below is gone
  int error_ = 0;              // SO_ERROR

  rdma_event_channel* channel_ = nullptr;
  rdma_cm_id* id_ = nullptr;
  struct Request {
    rdma_cm_id* id;
    ConnectData data;
  };
  std::deque<Request> requests_;  // for a listener

  // Options.
  LinkSizes sizes_;
  bool no_delay_ = false, keep_alive_ = false, inline_urgent_ = false, reuse_address_ = false, only_v6_ = false;
  int keep_alive_seconds_ = 7200, keep_alive_interval_ = 75, keep_alive_probes_ = 9;
  linger linger_{0, 0};
  Deadline linger_until_;           // since rclose

  // The connection.
  std::unique_ptr<Link> link_;
  std::optional<SendRing> send_ring_;
  std::optional<ReceiveRing> receive_ring_;
  bool swap_ = false;               // the peer's byte order differs
  bool armed_ = false;              // the completion queue will raise an event
  unsigned unacknowledged_ = 0;     // events of the completion queue
  uint32_t slots_free_ = 0;         // send work requests
  uint32_t sends_undriven_ = 0;     // since the last Drive
  uint16_t sent_messages_ = 0;      // data messages, modulo 2^16
  uint16_t credit_limit_ = 0;       // the peer accepts messages up to this number
  uint16_t peer_reserve_ = 0;       // credits reserved for control messages
  uint16_t credits_ = 0;            // number that we give at a time
  uint16_t credits_due_at_ = 0;     // number of messages read at which they are due
  Target peer_list_;                // where the peer wants to be told about free buffers
  uint32_t peer_list_next_ = 1;
  uint64_t peer_map_ = 0;           // the peer's I/O map, with the key of its list
  uint32_t peer_map_entries_ = 0;
  Target targets_[kTargetListSize];  // where we may write; length 0: nothing
  uint32_t target_ = 0;             // the current one
  uint32_t target_next_ = 1;        // the next one to read from the list
  uint32_t map_credits_ = 0;        // credits for messages about the map, which do not use the receive ring
  std::list<Mapping> mappings_;
  bool mappings_pending_ = false;
};

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_STREAM_H_
