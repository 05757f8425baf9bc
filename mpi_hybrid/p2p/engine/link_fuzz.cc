// The parser of what arrives from another rank, with operations under way for the frames to refer to: no input may crash it or make it
// touch memory outside the buffers, whatever the cuts of the stream.
//
// Input: cuts (1 byte), then pieces of 8 bytes. The first says what: bytes as they are (the other 7), or a frame that is valid but for its
// values, which the other bytes choose among likely ones, and its data.

#include <algorithm>
#include <climits>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/p2p/engine/engine.h"

namespace weft::mpi {
namespace {

constexpr EngineLimits kLimits = {.eager = 100, .window = 4000, .chunk = 64};
constexpr size_t kRoom = 150;  // bytes of each receive

constexpr size_t kStreams = 4;

struct Fixture {
  // `streams`: the frames come over several, in the order that the input says.
  explicit Fixture(bool streams) : engine(0, kLimits), comm(new Comm) {
    comm->send_context = comm->receive_context = 4;
    auto group = MakeRef<Group>();
    group->members = {0, 1};
    comm->local = comm->remote = group;
    engine.set_on_note([] {});
    if (streams) link().UseStreams(kStreams);
    link().Open(kLimits.window);
    const Datatype& byte = *Datatype::Find(MPI_BYTE);
    const Ref<Datatype> strided = MakeVector(50, 3, 5, byte);
    for (int i = 0; i < 6; ++i) {
      Request* request;
      received.emplace_back(i % 2 ? 250 : kRoom);
      const int source = i % 3 ? 1 : MPI_ANY_SOURCE, tag = i < 4 ? i : MPI_ANY_TAG;
      const Error error = engine.StartReceive(received.back().data(), i % 2 ? 1 : kRoom, i % 2 ? *strided : byte, source, tag, *comm,
                                              Channel::kPointToPoint, &request);
      WEFT_CHECK(error.ok());
      requests.push_back(request);
    }
    for (int i = 0; i < 6; ++i) {
      Request* request;
      const SendMode mode = i % 2 ? SendMode::kSynchronous : SendMode::kStandard;
      const Error error = engine.StartSend(sent.data(), i < 3 ? 50 : 400, byte, 1, i, *comm, mode, Channel::kPointToPoint, &request);
      WEFT_CHECK(error.ok());
      requests.push_back(request);
    }
    Write();
  }
  ~Fixture() {
    engine.OnGone(1, false);
    for (Request* request : requests) {
      WEFT_CHECK(request->complete);
      request->Release();
    }
  }

  Link& link() { return engine.LinkTo(1); }
  void Write() {
    iovec pieces[16];
    while (const size_t count = link().PrepareWrite(pieces)) {
      size_t bytes = 0;
      for (size_t i = 0; i < count; ++i) bytes += pieces[i].iov_len;
      link().Written(bytes);
    }
  }
  // False: the link is broken.
  bool Read(std::vector<uint8_t>& stream, size_t most, size_t number) {
    uint8_t staging[64];
    iovec pieces[8];
    const size_t count = link().PrepareRead(pieces, staging, number);
    WEFT_CHECK(count != 0);
    size_t read = 0;
    for (size_t i = 0; i < count; ++i) {
      const size_t part = std::min({pieces[i].iov_len, most - read, stream.size() - read});
      if (part != 0) std::memcpy(pieces[i].iov_base, stream.data() + read, part);
      read += part;
    }
    stream.erase(stream.begin(), stream.begin() + static_cast<long>(read));
    return link().ReadDone(read, staging, number);
  }

  Engine engine;
  Ref<Comm> comm;
  std::vector<uint8_t> sent = std::vector<uint8_t>(400);
  std::vector<std::vector<uint8_t>> received;
  std::vector<Request*> requests;
};

uint32_t LikelyId(uint8_t choice) { return choice == 0xff ? 0xffffffff : 0x01000000u * (1 + choice / 16 % 3) + choice % 16; }

std::vector<uint8_t> LikelyFrame(const uint8_t* piece, bool streams) {
  FrameHeader header;
  header.kind = static_cast<FrameKind>(1 + piece[0] / 2 % 11);
  header.flags = piece[1] & (kFlagSynchronous | kFlagRefused);
  header.credit = piece[1] * 64u;
  header.context = piece[2] & 1 ? 4 : piece[2];
  header.source = piece[3] % 3;
  header.tag = piece[4] % 6;
  header.send_id = LikelyId(piece[5]);
  header.receive_id = LikelyId(piece[6]);
  if (streams && FrameHeader::IsMessage(header.kind)) header.number = piece[6] % 8;
  header.length = piece[7] < 200 ? piece[7] : piece[7] * 20u;
  std::vector<uint8_t> bytes(FrameHeader::kLength);
  header.SerializeTo(std::span<uint8_t, FrameHeader::kLength>(bytes.data(), FrameHeader::kLength));
  if (header.has_body()) bytes.resize(bytes.size() + header.length, piece[1]);
  return bytes;
}

void RunOne(const uint8_t* data, size_t size, bool streams) {
  if (size == 0) return;
  Fixture fixture(streams);
  const size_t most = data[0] == 0 ? 1 : data[0] * 3u;
  std::vector<uint8_t> waiting[kStreams];
  for (size_t at = 1; at + 8 <= size; at += 8) {
    const size_t number = streams ? data[at + 2] / 2 % kStreams : 0;
    std::vector<uint8_t>& stream = waiting[number];
    if (data[at] % 16 == 15) {
      stream.insert(stream.end(), data + at + 1, data + at + 8);
    } else {
      const std::vector<uint8_t> frame = LikelyFrame(data + at, streams);
      stream.insert(stream.end(), frame.begin(), frame.end());
    }
    // Over several streams a frame is not always there at once.
    for (int pieces = streams ? 1 + data[at + 3] % 8 : INT_MAX; !stream.empty() && pieces != 0; --pieces) {
      if (!fixture.Read(stream, most, number)) return;
    }
    fixture.Write();
  }
}

}  // namespace
}  // namespace weft::mpi

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::mpi::RunOne(data, size, /*streams=*/false);
  weft::mpi::RunOne(data, size, /*streams=*/true);
  return 0;
}
