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

// The messages from origins to targets, beside RDMA Writes and Reads, and the replies. Big-endian.
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
// Bit 0 of the flags: a reply is wanted, which repeats the `reply slot`. Bit 3: the origin could use more room. Bits 1
// and 2, in data messages that want a reply: the operation is a whole epoch of a shared or of an exclusive lock. It is
// done if the lock is free; otherwise the reply is "busy" and nothing was done. Bit 4, in fences: the origin's next
// fence wants the target's own notice as its reply (fence_notice.h); "busy" means that the notice is sent by a message
// instead. Bit 5, in kGet and kGetByWrite: the message also contains the origin's fence. Bit 7 of the status: the reply
// is also the one to that fence, which is done.
// `consumed`: number of messages of this connection that the target has handled, modulo 2^32; for each one the origin
// may send another. `room`: how many messages may be in flight, from kFirstRoom up to kSlots; it never shrinks. Each
// takes registered memory at the target; therefore an origin that sends little has little room. Offsets count from the
// window's base; in a dynamic window they are addresses.
namespace weft::mpi::rma {

constexpr size_t kSlotBytes = 16384;  // longest message and longest reply
constexpr uint32_t kSlots = 16;       // most messages in flight per connection, and replies
constexpr uint32_t kFirstRoom = 1;    // messages in flight on a new connection
constexpr size_t kFirstBytes = 2048;  // longest message on a connection that has only the first room
constexpr size_t kHeaderBytes = 8;
constexpr size_t kDataHeaderBytes = 16;
constexpr size_t kBlockBytes = 24;
constexpr size_t kReplyBytes = 8;
constexpr size_t kMaxBlocks = 128;  // in one message
// Most bytes of data in a message with that many blocks. A reply always has space for as much.
constexpr size_t DataRoom(size_t blocks) { return kSlotBytes - kHeaderBytes - kDataHeaderBytes - blocks * kBlockBytes; }

enum class MessageKind : uint8_t {
  kNothing = 0,  // asks for a reply: all messages before it on this connection have been handled
  kFence,
  kPost,
  kComplete,
  kLockShared,  // the reply is the grant
  kLockExclusive,
  kUnlock,
  kPut,            // data message; op and basic type unused
  kGet,            // data message without data; the reply has the data
  kAccumulate,     // data message
  kGetAccumulate,  // data message, without data if op is MPI_NO_OP; the reply has the previous values
  kCompareAndSwap,
  kFindRegion,  // in a dynamic window; the reply has the key of the region (32)
  kLockOvertaking,  // like kLockShared, without waiting behind ranks that wait for exclusive use
  kGetByWrite,      // an RDMA Write to the origin's address brings the data, followed by the reply
  kLast = kGetByWrite,
};

enum class LockKind : uint8_t { kNone, kShared, kExclusive };

struct MessageHeader {
  MessageKind kind = MessageKind::kNothing;
  bool wants_reply = false;
  uint16_t reply_slot = 0;
  uint32_t window = 0;
  LockKind epoch = LockKind::kNone;  // the operation is the whole epoch of this lock
  bool wants_room = false;
  bool promises = false;  // of kFence
  bool with_fence = false;  // of kGet and kGetByWrite: a FenceBehind follows at the end
};

// `count` blocks of `bytes` bytes of data, `stride` bytes apart. In accumulates a block consists of whole elements,
// which are one extent apart in memory.
struct Block {
  uint64_t offset = 0;
  uint32_t bytes = 0;
  uint32_t count = 1;
  int64_t stride = 0;
};

struct DataHeader {
  MPI_Op op = MPI_OP_NULL;
  MPI_Datatype basic = MPI_DATATYPE_NULL;
  uint32_t bytes = 0;  // of data in all blocks together
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

// A fence that is announced in the message of a Get.
struct FenceBehind {
  uint32_t number = 0;
  bool promises = false, asks = false;
  uint16_t reply_slot = 0;  // if it asks; not the slot of the Get
};
constexpr size_t kFenceBehindBytes = 8;

// The target writes its `bytes` bytes at `offset` to the origin's memory at `address`.
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
  bool of_fence = false;  // it is also the reply to the fence that came with the Get
};

// Writers store into `out`, which must be large enough, and return the number of bytes.
size_t WriteHeader(const MessageHeader& header, std::span<uint8_t> out);
size_t WriteDataHeader(const DataHeader& header, std::span<const Block> blocks, std::span<uint8_t> out);
size_t WriteCompareAndSwap(const CompareAndSwapMessage& message, std::span<uint8_t> out);
size_t WriteFence(uint32_t number, std::span<uint8_t> out);
size_t WriteFenceBehind(const FenceBehind& fence, std::span<uint8_t> out);
size_t WriteFindRegion(const FindRegion& message, std::span<uint8_t> out);
size_t WriteGetByWrite(const GetByWrite& message, std::span<uint8_t> out);
size_t WriteReply(const ReplyHeader& header, std::span<uint8_t> out);

// Parsers check all fields. nullopt: the message is malformed.
std::optional<MessageHeader> ParseHeader(ByteSpan message);
// `body`: the bytes behind the message's header. `blocks` has space for kMaxBlocks. On success the blocks are not
// empty, have header.bytes bytes in total, and stay within the 64-bit address space. `data` has header.bytes bytes; it
// is empty if `with_data` is false.
std::optional<DataHeader> ParseData(ByteSpan body, bool with_data, std::span<Block> blocks, ByteSpan* data);
// The operation in a kGetAccumulate, which tells whether the message has data.
std::optional<MPI_Op> PeekOp(ByteSpan body);
std::optional<CompareAndSwapMessage> ParseCompareAndSwap(ByteSpan body);
std::optional<uint32_t> ParseFence(ByteSpan body);
// Removes it from the end of the body.
std::optional<FenceBehind> TakeFenceBehind(ByteSpan* body);
std::optional<FindRegion> ParseFindRegion(ByteSpan body);
// The length is between 1 and kMostGetByWrite bytes.
std::optional<GetByWrite> ParseGetByWrite(ByteSpan body);
std::optional<ReplyHeader> ParseReply(ByteSpan reply);

// The private data of a connection request and of its acceptance, which tell who connects. Each end proves that it
// knows the secret that the two processes share (core/process_table.h), without revealing it. The target's nonce was
// published with its address through the job's messages; therefore the origin can send its proof in the first message.
// The proof is valid as long as the target lives, but the target accepts only one connection of each process. A request
// that it refused for lack of resources is not accepted again, nor is an older one. The origin then sends another
// nonce, which begins with a higher number of its requests.
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
  uint64_t control_address = 0;  // address of 8 readable bytes, for Reads that prove that Writes have arrived
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

// The data that an end authenticates by its proof.
struct Acquaintance {
  Nonce target, origin;
  ProcessName process;           // the origin
  uint64_t control_address = 0;  // of the target; 0 in the origin's proof, which is made before it is known
  uint32_t control_key = 0;
};
constexpr char kOrigin[] = "weft-rma origin", kTarget[] = "weft-rma target";
JobSecret::Proof Prove(const JobSecret& secret, const char* who, const Acquaintance& said);
ShortProof ProveShortly(const JobSecret& secret, const char* who, const Acquaintance& said);
bool Verifies(const JobSecret& secret, const char* who, const Acquaintance& said, std::span<const uint8_t> proof);

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_WIRE_H_
