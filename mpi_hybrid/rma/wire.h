#ifndef MPI_HYBRID_RMA_WIRE_H_
#define MPI_HYBRID_RMA_WIRE_H_

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/byte_reader.h"
#include "base/job_secret.h"
#include "mpi_hybrid/core/process_table.h"

// What origins send to targets beside RDMA Writes and Reads, and what targets answer. Big-endian.
//
//  message                       0       1       2               4               8
//                                | kind  | flags | reply slot    | window        | body ...
//  body of a data message        | op            | basic type    | bytes of data | blocks (16)   0 (16)  | block ... |
//  data block                         | offset (64)                   | bytes         | count         | stride (64) |
//  body of compare and swap      | offset (64)                   | basic type    | origin | compare
//  body of fence                 | number (32)   |
//  fence behind a Get            | number (32)   | promises, asks| reply slot    |    the last bytes of the message, if bit 5 of the flags is set
//  body of find region           | address (64)                  | bytes (64)    |
//  body of get by Write          | offset (64)                   | address (64)                  | key           | bytes         |
//  reply                         | status| room  | reply slot    | consumed      | data ...
//
// Bit 0 of the flags: a reply is wanted, which names the `reply slot` again. Bit 3: the origin would have use for more
// room. Bits 1 and 2, of data messages that want a reply: the operation is a whole epoch, of a shared lock or of an
// exclusive one; it is done if the lock is free, else the reply is "busy" and nothing was done. Bit 4, of fences: the
// origin's next fence wants the target's own notice as its reply (fence_notice.h); "busy" says that the notice went, or
// goes, by a message. Bit 5, of kGet and kGetByWrite: the origin's fence comes with it. Bit 7 of the status: the reply is the one
// to the fence, too, which is done. `consumed`: messages of this connection that the target has dealt with, modulo 2^32; each gives
// the origin one more to send. `room`: how many may be in flight, from kFirstRoom up to kSlots; it never shrinks. Each
// takes registered memory at the target, so that an origin that sends little has little. Offsets count from the window's
// base; in a dynamic window they are addresses.
namespace weft::mpi::rma {

constexpr size_t kSlotBytes = 16384;  // longest message and longest reply
constexpr uint32_t kSlots = 16;       // most messages in flight per connection, and replies
constexpr uint32_t kFirstRoom = 1;    // messages in flight on a new connection
constexpr size_t kFirstBytes = 2048;  // longest message on a connection with no more room than that
constexpr size_t kHeaderBytes = 8;
constexpr size_t kDataHeaderBytes = 16;
constexpr size_t kBlockBytes = 24;
constexpr size_t kReplyBytes = 8;
constexpr size_t kMaxBlocks = 128;  // of one message
// Most data in a message with so many blocks; a reply always holds as much.
constexpr size_t DataRoom(size_t blocks) { return kSlotBytes - kHeaderBytes - kDataHeaderBytes - blocks * kBlockBytes; }

enum class MessageKind : uint8_t {
  kNothing = 0,  // asks for a reply: everything before it on this connection was done
  kFence,
  kPost,
  kComplete,
  kLockShared,  // the reply is the grant
  kLockExclusive,
  kUnlock,
  kPut,            // data message; op and basic type unused
  kGet,            // data message without data; the reply has it
  kAccumulate,     // data message
  kGetAccumulate,  // data message, without data when op is MPI_NO_OP; the reply has what was there before
  kCompareAndSwap,
  kFindRegion,  // of a dynamic window; the reply has its key (32)
  kLockOvertaking,  // as kLockShared, but not behind those that wait for exclusive use
  kGetByWrite,      // an RDMA Write to the origin's address has the data, and the reply is behind it
  kLast = kGetByWrite,
};

enum class LockKind : uint8_t { kNone, kShared, kExclusive };

struct MessageHeader {
  MessageKind kind = MessageKind::kNothing;
  bool wants_reply = false;
  uint16_t reply_slot = 0;
  uint32_t window = 0;
  LockKind epoch = LockKind::kNone;  // of which the operation is all
  bool wants_room = false;
  bool promises = false;  // of kFence
  bool with_fence = false;  // of kGet and kGetByWrite: a FenceBehind is at the end
};

// `count` blocks of `bytes` bytes of data, `stride` bytes apart. In accumulates a block is whole elements, one extent
// apart in memory.
struct Block {
  uint64_t offset = 0;
  uint32_t bytes = 0;
  uint32_t count = 1;
  int64_t stride = 0;
};

struct DataHeader {
  MPI_Op op = MPI_OP_NULL;
  MPI_Datatype basic = MPI_DATATYPE_NULL;
  uint32_t bytes = 0;  // of data, all blocks together
  uint16_t blocks = 0;
};

struct CompareAndSwapMessage {
  uint64_t offset = 0;
  MPI_Datatype basic = MPI_DATATYPE_NULL;
  ByteSpan origin, compare;  // of equal length, 1 to 16 bytes
};

struct FindRegion {
  uint64_t address = 0, bytes = 0;
};

// A fence that is told in the message of a Get.
struct FenceBehind {
  uint32_t number = 0;
  bool promises = false, asks = false;
  uint16_t reply_slot = 0;  // if it asks; not the Get's
};
constexpr size_t kFenceBehindBytes = 8;

// The target's `bytes` bytes at `offset` go to the origin's memory at `address`.
struct GetByWrite {
  uint64_t offset = 0, address = 0;
  uint32_t key = 0, bytes = 0;
};
constexpr uint32_t kMostGetByWrite = 131072;  // bytes

enum class ReplyStatus : uint8_t { kDone = 0, kOutOfRange = 1, kBusy = 2, kLast = kBusy };

struct ReplyHeader {
  ReplyStatus status = ReplyStatus::kDone;
  uint16_t reply_slot = 0;
  uint32_t consumed = 0;
  uint8_t room = kFirstRoom;
  bool of_fence = false;  // too: that which came with the Get
};

// Writers: into `out`, which has room; the bytes written.
size_t WriteHeader(const MessageHeader& header, std::span<uint8_t> out);
size_t WriteDataHeader(const DataHeader& header, std::span<const Block> blocks, std::span<uint8_t> out);
size_t WriteCompareAndSwap(const CompareAndSwapMessage& message, std::span<uint8_t> out);
size_t WriteFence(uint32_t number, std::span<uint8_t> out);
size_t WriteFenceBehind(const FenceBehind& fence, std::span<uint8_t> out);
size_t WriteFindRegion(const FindRegion& message, std::span<uint8_t> out);
size_t WriteGetByWrite(const GetByWrite& message, std::span<uint8_t> out);
size_t WriteReply(const ReplyHeader& header, std::span<uint8_t> out);

// Parsers: nothing is trusted. Nothing: the message is malformed.
std::optional<MessageHeader> ParseHeader(ByteSpan message);
// `body` is what follows the message's header. `blocks` has room for kMaxBlocks. The blocks are not empty, hold
// header.bytes bytes together, and do not leave the 64-bit address space; `data` is header.bytes long, or empty for
// `with_data` false.
std::optional<DataHeader> ParseData(ByteSpan body, bool with_data, std::span<Block> blocks, ByteSpan* data);
// Whether the header's operation of a kGetAccumulate comes with data.
std::optional<MPI_Op> PeekOp(ByteSpan body);
std::optional<CompareAndSwapMessage> ParseCompareAndSwap(ByteSpan body);
std::optional<uint32_t> ParseFence(ByteSpan body);
// Takes it from the end of the body.
std::optional<FenceBehind> TakeFenceBehind(ByteSpan* body);
std::optional<FindRegion> ParseFindRegion(ByteSpan body);
// At least one byte, and at most kMostGetByWrite.
std::optional<GetByWrite> ParseGetByWrite(ByteSpan body);
std::optional<ReplyHeader> ParseReply(ByteSpan reply);

// Who connects: the private data of the connection request, and of its acceptance. Each end proves that it knows the
// secret that the two have in common (core/process_table.h), and shows it to nobody. The target's nonce comes with its address, over the job's messages; so the
// origin's proof needs no question first. It would be good for as long as the target lives, and the target takes one of
// each process. One that it refused for want of room is not taken again, nor is an older one: the origin comes back with another nonce, which begins with
// a higher count of its requests.
//
//  request     magic | origin: job (16), rank | origin's nonce: count (8), random (8) | first bytes of the proof (16)
//  acceptance  magic | control address (64) | control key | proof (32)
//  refusal     kNoRoom, or nothing
using ShortProof = std::array<uint8_t, JobSecret::kShortestProof>;
struct Hello {
  ProcessName origin;
  Nonce nonce{};
  ShortProof proof{};
};
struct Welcome {
  uint64_t control_address = 0;  // 8 readable bytes, for Reads that prove that Writes arrived
  uint32_t control_key = 0;
  JobSecret::Proof proof{};
};
constexpr uint8_t kNoRoom[8] = {'n', 'o', ' ', 'r', 'o', 'o', 'm', 0};
constexpr size_t kHelloBytes = 4 + sizeof(JobId) + 4 + sizeof(Nonce) + sizeof(ShortProof);
static_assert(kHelloBytes <= 56, "what the connection manager of InfiniBand has room for");
constexpr size_t kWelcomeBytes = 16 + sizeof(JobSecret::Proof);
Nonce CountedNonce(uint64_t count);
uint64_t CountOf(const Nonce& nonce);
void WriteHello(const Hello& hello, std::span<uint8_t, kHelloBytes> out);
std::optional<Hello> ParseHello(ByteSpan bytes);  // longer is allowed: some transports pad private data
void WriteWelcome(const Welcome& welcome, std::span<uint8_t, kWelcomeBytes> out);
std::optional<Welcome> ParseWelcome(ByteSpan bytes);

// What an end proves, and what it proves it with.
struct Acquaintance {
  Nonce target, origin;
  ProcessName process;           // the origin
  uint64_t control_address = 0;  // of the target; 0 in the origin's proof, which comes before
  uint32_t control_key = 0;
};
constexpr char kOrigin[] = "weft-rma origin", kTarget[] = "weft-rma target";
JobSecret::Proof Prove(const JobSecret& secret, const char* who, const Acquaintance& said);
ShortProof ProveShortly(const JobSecret& secret, const char* who, const Acquaintance& said);
bool Verifies(const JobSecret& secret, const char* who, const Acquaintance& said, std::span<const uint8_t> proof);

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_WIRE_H_
