// One end of two rings whose other end writes what it likes, with operations under way for the frames to refer to: no
// input may crash it, make it touch memory outside the buffers, or lose or double a cell.
//
// Input: pieces of 16 bytes. The first byte says what: a slot whose values the other bytes choose among likely ones, with
// a frame in it or bytes as they are; how far the other end is with reading; or a turn of this end.

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/p2p/engine/engine.h"
#include "mpi_hybrid/p2p/host/host_connection.h"

namespace weft::mpi::host {
namespace {

constexpr EngineLimits kLimits = {.eager = 30'000, .window = 400'000, .chunk = 200'000};

struct Fixture final : HostConnection::Owner {
  Fixture() : engine(0, kLimits), comm(new Comm) {
    comm->send_context = comm->receive_context = 4;
    auto group = MakeRef<Group>();
    group->members = {0, 1};
    comm->local = comm->remote = group;
    out->reads_memory = 1;
    connection->set_reads_memory();
    link().Open(kLimits.window);
    const Datatype& byte = *Datatype::Find(MPI_BYTE);
    for (int i = 0; i < 4; ++i) {
      Request* request;
      received.emplace_back(i % 2 ? 250 : 20'000);
      WEFT_CHECK(engine.StartReceive(received.back().data(), static_cast<MPI_Aint>(received.back().size()), byte, 1, i,
                                     *comm, Channel::kPointToPoint, &request).ok());
      requests.push_back(request);
    }
    for (int i = 0; i < 6; ++i) {
      Request* request;
      const MPI_Aint length = i < 2 ? 50 : i < 4 ? 20'000 : 180'000;
      WEFT_CHECK(engine.StartSend(sent.data(), length, byte, 1, i, *comm, SendMode::kStandard, Channel::kPointToPoint,
                                  &request).ok());
      requests.push_back(request);
    }
  }
  ~Fixture() {
    engine.OnGone(1, false);
    for (Request* request : requests) {
      WEFT_CHECK(request->complete);
      request->Release();
    }
    connection->OnPeerGone(/*is_dead=*/true);
    connection.reset();
    WEFT_CHECK(cells.free() == kCells);
    std::vector<bool> seen(kCells);
    while (cells.free() != 0) {
      const size_t cell = cells.Take();
      WEFT_CHECK(cell < kCells && !seen[cell]);
      seen[cell] = true;
    }
  }

  // As a receive does for which nothing is posted.
  bool TakeAtOnce() {
    iovec pieces[2];
    const size_t count = link().is_between_frames() ? connection->Peek(pieces) : 0;
    std::vector<uint8_t> frame;
    for (size_t i = 0; i < count; ++i) {
      const auto* bytes = static_cast<const uint8_t*>(pieces[i].iov_base);
      frame.insert(frame.end(), bytes, bytes + pieces[i].iov_len);
    }
    if (frame.size() < FrameHeader::kLength) return false;
    const auto header = FrameHeader::Parse(std::span<const uint8_t>(frame).first<FrameHeader::kLength>());
    if (!header || header->kind != FrameKind::kEager || header->length != frame.size() - FrameHeader::kLength) return false;
    if (!link().TakeAtOnce(header->credit, header->length)) return false;
    connection->Taken();
    return true;
  }

  void WakePeer(HostConnection&) override {}
  // Where there is such memory: anything, or a part of it.
  ssize_t ReadPeer(HostConnection&, std::span<const iovec> to, uint64_t from, size_t bytes) override {
    if (from % 4 == 0) return -1;
    if (from % 4 == 1) return 0;
    if (from % 4 == 2) bytes = (bytes + 1) / 2;
    size_t read = 0;
    for (const iovec& piece : to) {
      const size_t part = std::min(piece.iov_len, bytes - read);
      std::memset(piece.iov_base, static_cast<int>(from), part);
      read += part;
    }
    return static_cast<ssize_t>(read);
  }
  bool StaysForLongData() override { return stays; }
  void OnLost(HostConnection&) override {}
  Link& link() { return engine.LinkTo(1); }

  bool stays = false;
  Engine engine;
  Ref<Comm> comm;
  std::vector<uint8_t> sent = std::vector<uint8_t>(180'000);
  std::vector<std::vector<uint8_t>> received;
  std::vector<Request*> requests;
  std::vector<uint8_t> area = std::vector<uint8_t>(kPlaceBytes), its_area = std::vector<uint8_t>(kPlaceBytes);
  std::vector<uint8_t> staging = std::vector<uint8_t>(1000);
  std::unique_ptr<RingPage> out{new RingPage{}}, in{new RingPage{}};
  std::atomic<uint32_t> attention{Slot::kAsleep}, stay{0};
  Cells cells{area.data()};
  std::unique_ptr<HostConnection> connection = std::make_unique<HostConnection>(
      *this, link(), 1,
      HostConnection::Memory{.out = *out, .in = *in, .cells = cells, .its_area = its_area.data(), .its_attention = attention, .its_stay = stay},
      /*in_place_from=*/100'000, staging);
};

void PutFrame(const uint8_t* piece, uint8_t* to) {
  FrameHeader header;
  header.kind = static_cast<FrameKind>(1 + piece[0] % 12);
  header.flags = piece[1] & 3;
  header.context = 4;
  header.source = 1;
  header.tag = piece[2] % 5;
  header.send_id = 0x01000000u + piece[3] % 8;
  header.receive_id = 0x01000000u + piece[4] % 8;
  header.length = piece[5] < 100 ? piece[5] : piece[5] * 120u;
  header.SerializeTo(std::span<uint8_t, FrameHeader::kLength>(to, FrameHeader::kLength));
}

void RunOne(const uint8_t* data, size_t size) {
  Fixture fixture;
  uint32_t number = 0;
  for (size_t at = 0; at + 16 <= size && !fixture.connection->is_lost(); at += 16) {
    const uint8_t* piece = data + at;
    switch (piece[0] % 4) {
      case 0:
        if (piece[1] == 1) fixture.stays = true;
        if (piece[1] == 2) fixture.stays = false;
        if (piece[1] == 3) fixture.connection->Leave();
        fixture.connection->Write();
        break;
      case 1:
        fixture.out->read = piece[1] < 240 ? fixture.out->read + piece[1] % 4 : piece[2];
        if (piece[3] == 1) fixture.out->reads_memory = piece[4] % 2;
        if (piece[3] == 1) fixture.out->refused = piece[5] < 250 ? piece[5] * 800u : uint64_t{piece[6]} << 56;
        fixture.connection->Write();
        fixture.connection->Arm();
        fixture.connection->OnAwake();
        break;
      default: {
        RingSlot& slot = fixture.in->slots[number % RingPage::kSlots];
        ++number;
        if (piece[1] % 8 == 0) {
          std::memcpy(slot.bytes, piece + 2, 14);
        } else {
          PutFrame(piece + 2, slot.bytes);
        }
        uint8_t bytes = piece[1] % 8 == 1 ? piece[9] : 40, kind = piece[10] % 32 < 5 ? piece[10] % 32 : 0;
        uint64_t where = piece[11] % 128, length = piece[12] * 33u;
        if (kind == 2 || kind == 4) where = piece[11];
        if (kind != 0) {
          std::memcpy(slot.bytes + 40, &where, 8);
          std::memcpy(slot.bytes + 48, &length, 8);
        } else if (bytes == 40) {
          bytes = static_cast<uint8_t>(40 + piece[13] % 17);
        }
        if (piece[14] > 250) kind = piece[13];
        slot.control = uint64_t{number} | uint64_t{bytes} << 32 | uint64_t{kind} << 40 | uint64_t{piece[15] == 77} << 50;
        if (piece[15] % 4 == 1 && fixture.TakeAtOnce()) break;
        fixture.connection->Read();
      }
    }
  }
}

}  // namespace
}  // namespace weft::mpi::host

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool quiet = (weft::SilenceWarnings(true), true);
  (void)quiet;
  weft::mpi::host::RunOne(data, size);
  return 0;
}
