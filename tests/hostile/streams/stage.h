#ifndef TESTS_HOSTILE_STREAMS_STAGE_H_
#define TESTS_HOSTILE_STREAMS_STAGE_H_

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ddp/types.h"
#include "rdmap/delivery.h"
#include "rdmap/terminate.h"
#include "rdmap/testing/segments.h"
#include "sim/net/virtual_network.h"
#include "sim/rnic.h"
#include "sim/testing/host.h"

// An RNIC in virtual time. A test plays the peers of its connected queue pairs, segment by segment.
namespace weft::hostile {

using Bytes = rdmap::testing::Bytes;

// The peer's end of one connection: FPDUs without CRC and markers.
class Peer {
 public:
  Peer(sim::VirtualNetwork& network, std::unique_ptr<transport::ByteStream> stream)
      : network_(network), stream_(std::move(stream)) {}

  // Sends one FPDU with `segment`; or only its first `bytes` bytes. SendBytes() can send the rest.
  void Send(const Bytes& segment) { SendBytes(Frame(segment)); }
  void SendBytes(const Bytes& bytes);
  static Bytes Frame(const Bytes& segment);

  // Reads at most `most` bytes that have arrived and were not read yet; lets the network run for a moment before.
  void Listen(size_t most = SIZE_MAX);
  // The next complete segment; nullopt: there is none.
  std::optional<Bytes> Next();
  // Skips to the received Terminate; nullopt: there is none.
  std::optional<rdmap::TerminateMessage> NextTerminate();
  bool ended() const { return ended_; }  // the other end closed or reset
  bool reset() const { return reset_; }

  void ShutdownWrite() { stream_->ShutdownWrite(); }

 private:
  void End(const transport::IoResult& result);

  sim::VirtualNetwork& network_;
  std::unique_ptr<transport::ByteStream> stream_;
  Bytes heard_;
  bool ended_ = false, reset_ = false;
};

struct Terms {
  rdmap::Delivery delivery = rdmap::Delivery::kPlain;
  uint16_t ird = 4, ord = 4;
  size_t max_ulpdu = 64768;
};

class Stage {
 public:
  // Uses the persona of WEFT_PERSONA.
  Stage();
  ~Stage();

  sim::Rnic& rnic() { return *rnic_; }
  sim::VirtualNetwork& network() { return network_; }
  bool roce() const { return rnic_->settings().persona == Persona::kRoce; }

  // The victim's queue pair goes to RTS, as after rdma_connect.
  std::unique_ptr<Peer> Connect(sim::testing::Program& victim, const Terms& terms = {});

  template <typename Rep, typename Period>
  void Pass(std::chrono::duration<Rep, Period> time) {
    network_.RunFor(time);
  }
  void Pass() { Pass(std::chrono::milliseconds(1)); }

  // The next completion of `program`; does not wait. nullopt: none.
  static std::optional<ibv_wc> Completion(sim::testing::Program& program);

 private:
  sim::VirtualNetwork network_{1};
  std::unique_ptr<sim::Rnic> rnic_;
  std::unique_ptr<transport::Listener> listener_;
};

// Returns 0 or the error of ibv_post_send.
int PostSend(sim::testing::Program& program, ibv_send_wr wr, const sim::RegionInfo& memory, uint64_t offset = 0,
             uint32_t length = 8);
int PostReceive(sim::testing::Program& program, const sim::RegionInfo& memory, uint32_t length = 64);

}  // namespace weft::hostile

#endif  // TESTS_HOSTILE_STREAMS_STAGE_H_
