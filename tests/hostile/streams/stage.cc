#include "tests/hostile/streams/stage.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/settings.h"
#include "ddp/header.h"
#include "wires/mpa/channel/channel.h"
#include "rdmap/opcode.h"

namespace weft::hostile {

using sim::testing::Program;
using transport::IoResult;
using transport::SocketAddress;

Bytes Peer::Frame(const Bytes& segment) {
  Bytes frame(2 + segment.size());
  frame[0] = static_cast<uint8_t>(segment.size() >> 8);
  frame[1] = static_cast<uint8_t>(segment.size());
  std::copy(segment.begin(), segment.end(), frame.begin() + 2);
  while (frame.size() % 4 != 0) frame.push_back(0);
  frame.resize(frame.size() + 4);
  return frame;
}

void Peer::SendBytes(const Bytes& bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    const iovec piece{const_cast<uint8_t*>(bytes.data()) + sent, bytes.size() - sent};
    const IoResult result = stream_->Write({&piece, 1});
    if (result.kind != IoResult::Kind::kDone) break;
    sent += result.bytes;
  }
  network_.RunFor(std::chrono::microseconds(100));
}

void Peer::Listen(size_t most) {
  std::array<uint8_t, 64 * 1024> bytes;
  while (most > 0) {
    const iovec into{bytes.data(), std::min(bytes.size(), most)};
    const IoResult result = stream_->Read({&into, 1});
    if (result.kind == IoResult::Kind::kDone) {
      heard_.insert(heard_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(result.bytes));
      most -= result.bytes;
    } else if (result.kind != IoResult::Kind::kWouldBlock) {
      return End(result);
    } else {
      const auto before = network_.Now();
      network_.RunFor(std::chrono::milliseconds(1));
      WEFT_CHECK(network_.Now() > before);
      const IoResult again = stream_->Read({&into, 1});
      if (again.kind == IoResult::Kind::kWouldBlock) return;
      if (again.kind != IoResult::Kind::kDone) return End(again);
      heard_.insert(heard_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(again.bytes));
      most -= again.bytes;
    }
  }
}

void Peer::End(const IoResult& result) {
  ended_ = true;
  reset_ = result.kind == IoResult::Kind::kFailed;
}

std::optional<Bytes> Peer::Next() {
  if (heard_.size() < 2) return std::nullopt;
  const size_t length = size_t{heard_[0]} << 8 | heard_[1];
  const size_t frame = (2 + length + 3) / 4 * 4 + 4;
  if (heard_.size() < frame) return std::nullopt;
  Bytes segment(heard_.begin() + 2, heard_.begin() + 2 + static_cast<ptrdiff_t>(length));
  heard_.erase(heard_.begin(), heard_.begin() + static_cast<ptrdiff_t>(frame));
  return segment;
}

std::optional<rdmap::TerminateMessage> Peer::NextTerminate() {
  Listen();
  while (auto segment = Next()) {
    const auto header = ddp::UntaggedHeader::Parse(*segment);
    if (!header.ok() || ddp::ControlField::Parse((*segment)[0]).tagged || header->queue != rdmap::kTerminateQueue)
      continue;
    return rdmap::TerminateMessage::Parse(ByteSpan(*segment).subspan(ddp::UntaggedHeader::kLength));
  }
  return std::nullopt;
}

Stage::Stage() {
  Settings settings;
  settings.persona = ProcessSettings().persona;
  rnic_ = std::make_unique<sim::Rnic>(network_, settings, 1);
  auto listening = network_.Listen(*SocketAddress::Parse("127.0.0.1", 700), 16, false, true);
  WEFT_CHECK(listening.ok());
  listener_ = std::move(*listening);
}

Stage::~Stage() {
  listener_.reset();
  network_.RunFor(std::chrono::seconds(200));  // lingering closes end, timers run out
}

std::unique_ptr<Peer> Stage::Connect(Program& victim, const Terms& terms) {
  auto stream = network_.StartConnect(*SocketAddress::Parse("127.0.0.1", 0), *SocketAddress::Parse("127.0.0.1", 700));
  WEFT_CHECK(stream.ok());
  network_.RunFor(std::chrono::milliseconds(1));
  auto accepted = listener_->Accept();
  WEFT_CHECK(accepted.ok());
  sim::EstablishOptions options{.terms = {.outcome = {.ird = terms.ird, .ord = terms.ord}, .delivery = terms.delivery, .initiator = true}};
  mpa::ChannelOptions framing{.initiator = true, .revision = 2, .crc = false, .max_ulpdu = terms.max_ulpdu, .queue_pair = victim.qp.qp->number()};
  auto channel = std::make_unique<mpa::Channel>(network_, rnic_->pool(), std::move(*stream), std::move(framing));
  WEFT_CHECK(victim.qp.qp->Establish(std::move(channel), std::move(options)) == 0);
  return std::make_unique<Peer>(network_, std::move(*accepted));
}

std::optional<ibv_wc> Stage::Completion(Program& program) {
  ibv_wc completion{};
  if (program.cq->Poll(1, &completion) != 1) return std::nullopt;
  return completion;
}

int PostSend(Program& program, ibv_send_wr wr, const sim::RegionInfo& memory, uint64_t offset, uint32_t length) {
  ibv_sge element{memory.address + offset, length, memory.stag.value};
  wr.sg_list = &element;
  wr.num_sge = 1;
  ibv_send_wr* bad = nullptr;
  return program.qp.qp->PostSend(&wr, &bad);
}

int PostReceive(Program& program, const sim::RegionInfo& memory, uint32_t length) {
  ibv_sge element{memory.address, length, memory.stag.value};
  ibv_recv_wr wr{};
  wr.sg_list = &element;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  return program.qp.qp->PostReceive(&wr, &bad);
}

}  // namespace weft::hostile
