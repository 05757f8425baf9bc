#include "mpi_hybrid/rma/wire.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/byte_writer.h"

namespace weft::mpi::rma {
namespace {

constexpr uint8_t kWantsReply = 1;
constexpr int kEpochShift = 1, kEpochMask = 3;
constexpr uint8_t kWantsRoom = 8, kPromises = 16, kWithFence = 32;
constexpr uint8_t kFenceAsks = 1, kFencePromises = 2;
constexpr uint8_t kOfFence = 128;
constexpr uint32_t kHelloMagic = 0x57524d6a;    // "WRMj"
constexpr uint32_t kWelcomeMagic = 0x57524d79;  // "WRMy"; both count as version 4

// Whether all of the block's bytes have addresses of at most 2^63 above its offset's zero.
bool Fits(const Block& block) {
  const __int128 last = static_cast<__int128>(block.offset) + static_cast<__int128>(block.count - 1) * block.stride;
  const __int128 low = block.stride < 0 ? last : static_cast<__int128>(block.offset);
  const __int128 high = (block.stride < 0 ? static_cast<__int128>(block.offset) : last) + block.bytes;
  return low >= 0 && high <= static_cast<__int128>(INT64_MAX);
}

}  // namespace

size_t WriteHeader(const MessageHeader& header, std::span<uint8_t> out) {
  ByteWriter writer(out);
  writer.U8(static_cast<uint8_t>(header.kind));
  writer.U8(static_cast<uint8_t>((header.wants_reply ? kWantsReply : 0) |
                                 static_cast<int>(header.epoch) << kEpochShift | (header.wants_room ? kWantsRoom : 0) |
                                 (header.promises ? kPromises : 0) | (header.with_fence ? kWithFence : 0)));
  writer.U16(header.reply_slot);
  writer.U32(header.window);
  return writer.size();
}

size_t WriteDataHeader(const DataHeader& header, std::span<const Block> blocks, std::span<uint8_t> out) {
  ByteWriter writer(out);
  writer.U32(static_cast<uint32_t>(header.op));
  writer.U32(static_cast<uint32_t>(header.basic));
  writer.U32(header.bytes);
  writer.U16(static_cast<uint16_t>(blocks.size()));
  writer.U16(0);
  for (const Block& block : blocks) {
    writer.U64(block.offset);
    writer.U32(block.bytes);
    writer.U32(block.count);
    writer.U64(static_cast<uint64_t>(block.stride));
  }
  return writer.size();
}

size_t WriteCompareAndSwap(const CompareAndSwapMessage& message, std::span<uint8_t> out) {
  ByteWriter writer(out);
  writer.U64(message.offset);
  writer.U32(static_cast<uint32_t>(message.basic));
  writer.Bytes(message.origin);
  writer.Bytes(message.compare);
  return writer.size();
}

size_t WriteFence(uint32_t number, std::span<uint8_t> out) {
  ByteWriter writer(out);
  writer.U32(number);
  return writer.size();
}

size_t WriteFenceBehind(const FenceBehind& fence, std::span<uint8_t> out) {
  ByteWriter writer(out);
  writer.U32(fence.number);
  writer.U16(static_cast<uint16_t>((fence.asks ? kFenceAsks : 0) | (fence.promises ? kFencePromises : 0)));
  writer.U16(fence.reply_slot);
  return writer.size();
}

size_t WriteFindRegion(const FindRegion& message, std::span<uint8_t> out) {
  ByteWriter writer(out);
  writer.U64(message.address);
  writer.U64(message.bytes);
  return writer.size();
}

size_t WriteGetByWrite(const GetByWrite& message, std::span<uint8_t> out) {
  ByteWriter writer(out);
  writer.U64(message.offset);
  writer.U64(message.address);
  writer.U32(message.key);
  writer.U32(message.bytes);
  return writer.size();
}

size_t WriteReply(const ReplyHeader& header, std::span<uint8_t> out) {
  ByteWriter writer(out);
  writer.U8(static_cast<uint8_t>(static_cast<uint8_t>(header.status) | (header.of_fence ? kOfFence : 0)));
  writer.U8(header.room);
  writer.U16(header.reply_slot);
  writer.U32(header.consumed);
  return writer.size();
}

std::optional<MessageHeader> ParseHeader(ByteSpan message) {
  if (message.size() < kHeaderBytes) return {};
  ByteReader reader(message);
  const uint8_t kind = reader.U8(), flags = reader.U8();
  const int epoch = flags >> kEpochShift & kEpochMask;
  if (flags > (kWithFence | kPromises | kWantsRoom | kEpochMask << kEpochShift | kWantsReply)) return {};
  if (kind > static_cast<uint8_t>(MessageKind::kLast) || epoch > static_cast<int>(LockKind::kExclusive)) return {};
  MessageHeader header{static_cast<MessageKind>(kind), (flags & kWantsReply) != 0, reader.U16(), 0,
                       static_cast<LockKind>(epoch)};
  header.window = reader.U32();
  header.wants_room = (flags & kWantsRoom) != 0;
  header.promises = (flags & kPromises) != 0;
  header.with_fence = (flags & kWithFence) != 0;
  if (header.promises && header.kind != MessageKind::kFence) return {};
  const bool may_have_fence = (header.kind == MessageKind::kGet || header.kind == MessageKind::kGetByWrite) && header.wants_reply && header.epoch == LockKind::kNone;
  if (header.with_fence && !may_have_fence) return {};
  const bool data = header.kind >= MessageKind::kPut && header.kind <= MessageKind::kCompareAndSwap;
  if (header.epoch != LockKind::kNone && (!data || !header.wants_reply)) return {};
  if (header.wants_reply && header.reply_slot >= kSlots) return {};
  return header;
}

std::optional<MPI_Op> PeekOp(ByteSpan body) {
  if (body.size() < kDataHeaderBytes) return {};
  return static_cast<MPI_Op>(ByteReader(body).U32());
}

std::optional<DataHeader> ParseData(ByteSpan body, bool with_data, std::span<Block> blocks, ByteSpan* data) {
  if (body.size() < kDataHeaderBytes) return {};
  ByteReader reader(body);
  DataHeader header;
  header.op = static_cast<MPI_Op>(reader.U32());
  header.basic = static_cast<MPI_Datatype>(reader.U32());
  header.bytes = reader.U32();
  header.blocks = reader.U16();
  reader.U16();
  if (header.blocks == 0 || header.blocks > kMaxBlocks || header.blocks > blocks.size()) return {};
  if (header.bytes > DataRoom(1) || reader.remaining() < header.blocks * kBlockBytes) return {};
  uint64_t bytes = 0;
  for (size_t i = 0; i < header.blocks; ++i) {
    Block& block = blocks[i];
    block.offset = reader.U64();
    block.bytes = reader.U32();
    block.count = reader.U32();
    block.stride = static_cast<int64_t>(reader.U64());
    if (block.bytes == 0 || block.count == 0 || !Fits(block)) return {};
    bytes += uint64_t{block.bytes} * block.count;
    if (bytes > header.bytes) return {};
  }
  if (bytes != header.bytes || reader.remaining() != (with_data ? header.bytes : 0)) return {};
  *data = reader.Rest();
  return header;
}

std::optional<CompareAndSwapMessage> ParseCompareAndSwap(ByteSpan body) {
  constexpr size_t kFixed = 12, kLongest = 16;
  if (body.size() < kFixed + 2 || (body.size() - kFixed) % 2 != 0 || body.size() > kFixed + 2 * kLongest) return {};
  ByteReader reader(body);
  CompareAndSwapMessage message;
  message.offset = reader.U64();
  message.basic = static_cast<MPI_Datatype>(reader.U32());
  message.origin = reader.Bytes(reader.remaining() / 2);
  message.compare = reader.Rest();
  return message;
}

std::optional<uint32_t> ParseFence(ByteSpan body) {
  if (body.size() != 4) return {};
  return ByteReader(body).U32();
}

std::optional<FenceBehind> TakeFenceBehind(ByteSpan* body) {
  if (body->size() < kFenceBehindBytes) return {};
  ByteReader reader(body->last(kFenceBehindBytes));
  FenceBehind fence{.number = reader.U32()};
  const uint16_t flags = reader.U16();
  if (flags > (kFencePromises | kFenceAsks)) return {};
  fence.asks = (flags & kFenceAsks) != 0;
  fence.promises = (flags & kFencePromises) != 0;
  fence.reply_slot = reader.U16();
  if (fence.asks && fence.reply_slot >= kSlots) return {};
  *body = body->first(body->size() - kFenceBehindBytes);
  return fence;
}

std::optional<FindRegion> ParseFindRegion(ByteSpan body) {
  if (body.size() != 16) return {};
  ByteReader reader(body);
  FindRegion message;
  message.address = reader.U64();
  message.bytes = reader.U64();
  return message;
}

std::optional<GetByWrite> ParseGetByWrite(ByteSpan body) {
  if (body.size() != 24) return {};
  ByteReader reader(body);
  GetByWrite message;
  message.offset = reader.U64();
  message.address = reader.U64();
  message.key = reader.U32();
  message.bytes = reader.U32();
  if (message.bytes == 0 || message.bytes > kMostGetByWrite) return {};
  return message;
}

std::optional<ReplyHeader> ParseReply(ByteSpan reply) {
  if (reply.size() < kReplyBytes) return {};
  ByteReader reader(reply);
  const uint8_t first = reader.U8(), status = first & ~kOfFence;
  if (status > static_cast<uint8_t>(ReplyStatus::kLast)) return {};
  ReplyHeader header{.status = static_cast<ReplyStatus>(status), .room = reader.U8(), .of_fence = (first & kOfFence) != 0};
  header.reply_slot = reader.U16();
  header.consumed = reader.U32();
  if (header.room < kFirstRoom || header.room > kSlots || header.reply_slot >= kSlots) return {};
  return header;
}

namespace {

void WriteName(const ProcessName& name, ByteWriter& writer) {
  writer.Bytes(name.job.bytes);
  writer.U32(static_cast<uint32_t>(name.rank));
}

}  // namespace

Nonce CountedNonce(uint64_t count) {
  Nonce nonce = NewNonce();
  ByteWriter(nonce).U64(count);
  return nonce;
}

uint64_t CountOf(const Nonce& nonce) { return ByteReader(nonce).U64(); }

void WriteHello(const Hello& hello, std::span<uint8_t, kHelloBytes> out) {
  ByteWriter writer(out);
  writer.U32(kHelloMagic);
  WriteName(hello.origin, writer);
  writer.Bytes(hello.nonce);
  writer.Bytes(hello.proof);
}

std::optional<Hello> ParseHello(ByteSpan bytes) {
  if (bytes.size() < kHelloBytes) return {};
  ByteReader reader(bytes);
  if (reader.U32() != kHelloMagic) return {};
  Hello hello;
  std::memcpy(hello.origin.job.bytes.data(), reader.Bytes(sizeof(JobId)).data(), sizeof(JobId));
  hello.origin.rank = static_cast<int32_t>(reader.U32());
  std::memcpy(hello.nonce.data(), reader.Bytes(hello.nonce.size()).data(), hello.nonce.size());
  std::memcpy(hello.proof.data(), reader.Bytes(hello.proof.size()).data(), hello.proof.size());
  return hello;
}

void WriteWelcome(const Welcome& welcome, std::span<uint8_t, kWelcomeBytes> out) {
  ByteWriter writer(out);
  writer.U32(kWelcomeMagic);
  writer.U64(welcome.control_address);
  writer.U32(welcome.control_key);
  writer.Bytes(welcome.proof);
}

std::optional<Welcome> ParseWelcome(ByteSpan bytes) {
  if (bytes.size() < kWelcomeBytes) return {};
  ByteReader reader(bytes);
  if (reader.U32() != kWelcomeMagic) return {};
  Welcome welcome;
  welcome.control_address = reader.U64();
  welcome.control_key = reader.U32();
  std::memcpy(welcome.proof.data(), reader.Bytes(welcome.proof.size()).data(), welcome.proof.size());
  return welcome;
}

namespace {

using Said = std::array<uint8_t, 2 * sizeof(Nonce) + sizeof(JobId) + 16>;

Said ToBytes(const Acquaintance& said) {
  Said bytes;
  ByteWriter writer(bytes);
  writer.Bytes(said.target);
  writer.Bytes(said.origin);
  WriteName(said.process, writer);
  writer.U64(said.control_address);
  writer.U32(said.control_key);
  return bytes;
}

}  // namespace

JobSecret::Proof Prove(const JobSecret& secret, const char* who, const Acquaintance& said) {
  return secret.Prove(who, ToBytes(said));
}

ShortProof ProveShortly(const JobSecret& secret, const char* who, const Acquaintance& said) {
  const JobSecret::Proof proof = Prove(secret, who, said);
  ShortProof first;
  std::copy_n(proof.begin(), first.size(), first.begin());
  return first;
}

bool Verifies(const JobSecret& secret, const char* who, const Acquaintance& said, std::span<const uint8_t> proof) {
  return secret.Verifies(proof, who, ToBytes(said));
}

}  // namespace weft::mpi::rma
