#ifndef FAULTS_KINDS_H_
#define FAULTS_KINDS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

// The kinds of faults. One table of kinds and one of keys: the parser, `weft faults --list` and weft-faults(7) all use
// them.
namespace weft::faults {

enum class Kind : uint8_t {
  kCut,
  kReset,
  kBlackhole,
  kDelay,
  kBandwidth,
  kCorrupt,
  kCompletion,
  kCqOverrun,
  kRnr,
  kFail,
  kCmEvent,
  kPortDown,
  kDeviceFatal,
  kSlowProgress,
};

// The keys, which stand before the "=". They are bits, so that a kind can tell which ones it takes.
enum Key : uint32_t {
  // How it fails.
  kTime = 1 << 0,
  kJitter = 1 << 1,
  kRate = 1 << 2,
  kStatus = 1 << 3,
  kErrno = 1 << 4,
  kCall = 1 << 5,
  kEvent = 1 << 6,
  kFor = 1 << 7,
  kGiveUp = 1 << 8,
  // Where: selectors.
  kQp = 1 << 9,
  kPeer = 1 << 10,
  kOpcode = 1 << 11,
  kDevice = 1 << 12,
  // When: triggers.
  kNth = 1 << 13,
  kEvery = 1 << 14,
  kProbability = 1 << 15,
  kAfterBytes = 1 << 16,
  kAfter = 1 << 17,
  kTimes = 1 << 18,
};

struct KeyInfo {
  Key key;
  const char* name;         // "after_bytes"
  const char* form;         // "BYTES"
  const char* explanation;  // one sentence
};
std::span<const KeyInfo> AllKeys();

struct KindInfo {
  Kind kind;
  const char* name;     // "cut"
  uint32_t takes;       // Keys
  uint32_t needs;       // those of them that are required
  const char* what;     // the effect, one sentence
  const char* unit;     // unit of nth=, every=, probability= and times=; nullptr: it takes none of them
  const char* symptom;  // what the program sees
  const char* example;  // an example specification
};
std::span<const KindInfo> AllKinds();
const KindInfo& InfoOf(Kind kind);
inline const char* NameOf(Kind kind) { return InfoOf(kind).name; }

// Acts on the bytes of a connection: faults/stream.h.
inline bool IsStreamKind(Kind kind) { return kind <= Kind::kCorrupt; }

// Names and numbers of values.
struct Word {
  const char* name;
  int value;
};
std::span<const Word> ErrnoWords();    // "ENOMEM"; numbers are allowed, too
std::span<const Word> StatusWords();   // ibv_wc_status without IBV_WC_
std::span<const Word> OpcodeWords();   // ibv_wr_opcode without IBV_WR_, and RECV
std::span<const Word> EventWords();    // rdma_cm_event_type without RDMA_CM_EVENT_
std::span<const Word> CallWords();     // verbs that can be made to fail; the value is a Call
// "?" for a value without a name.
std::string NameIn(std::span<const Word> words, int value);

inline constexpr int kReceiveOpcode = 0x80;  // OpcodeWords: RECV, which is not an ibv_wr_opcode

// The verbs that the kind `fail` supports.
enum class Call : uint8_t {
  kOpenDevice,
  kAllocPd,
  kRegMr,
  kCreateCompChannel,
  kCreateCq,
  kResizeCq,
  kCreateQp,
  kModifyQp,
  kPostSend,
  kPostRecv,
  kCreateSrq,
  kCreateAh,
  kAllocMw,
};

}  // namespace weft::faults

#endif  // FAULTS_KINDS_H_
