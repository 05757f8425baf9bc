#include "faults/plan.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/host_port.h"
#include "base/log.h"
#include "base/nearest.h"

namespace weft::faults {
namespace {

using transport::SocketAddress;

constexpr size_t kMostFaults = 1000;
constexpr size_t kLongestFile = 1 << 20;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool SameWord(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return Lower(x) == Lower(y); });
}

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool EndsFault(char c) { return c == ';' || c == '\n'; }

std::string Quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

// A number with an optional fraction at the beginning of `text`, which loses it. Nothing else is read: no sign, no
// exponent.
std::optional<double> TakeNumber(std::string_view& text) {
  size_t digits = 0;
  double value = 0, scale = 1;
  bool fraction = false;
  size_t at = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.' && !fraction) {
      fraction = true;
    } else if (c >= '0' && c <= '9') {
      ++digits;
      if (fraction) {
        scale /= 10;
        value += (c - '0') * scale;
      } else {
        value = value * 10 + (c - '0');
      }
    } else {
      break;
    }
  }
  if (digits == 0 || digits > 18) return std::nullopt;
  text.remove_prefix(at);
  return value;
}

struct Suffix {
  const char* name;
  double factor;
};

// A number with one of these suffixes, below `most`; "" allows none.
std::optional<double> Scaled(std::string_view text, std::span<const Suffix> suffixes, double most) {
  const auto number = TakeNumber(text);
  if (!number) return std::nullopt;
  for (const Suffix& suffix : suffixes) {
    if (!SameWord(text, suffix.name)) continue;
    const double value = *number * suffix.factor;
    return value <= most ? std::optional(value) : std::nullopt;
  }
  return std::nullopt;
}

constexpr double kLongestTime = 1e9 * 86400 * 365;
constexpr Suffix kTimeSuffixes[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
constexpr Suffix kByteSuffixes[] = {{"", 1}, {"k", 1024}, {"m", 1048576}, {"g", 1073741824.0}, {"t", 1099511627776.0}};
constexpr Suffix kRateSuffixes[] = {{"bit", 1}, {"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}};

std::optional<uint64_t> Unsigned(std::string_view text, uint64_t most) {
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && Lower(text[1]) == 'x') {
    base = 16;
    text.remove_prefix(2);
  }
  if (text.empty()) return std::nullopt;
  uint64_t value = 0;
  for (const char raw : text) {
    const char c = Lower(raw);
    int digit = -1;
    if (c >= '0' && c <= '9') digit = c - '0';
    if (base == 16 && c >= 'a' && c <= 'f') digit = c - 'a' + 10;
    if (digit < 0 || value > (most - static_cast<uint64_t>(digit)) / static_cast<uint64_t>(base)) return std::nullopt;
    value = value * static_cast<uint64_t>(base) + static_cast<uint64_t>(digit);
  }
  return value;
}

// Reads one specification from its beginning to its end; the first error stops it.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  bool Run() {
    for (;;) {
      SkipToFault();
      if (at_ == text_.size()) return true;
      if (!ReadFault()) return false;
    }
  }

  Plan plan;
  ParseError error;

 private:
  bool Fail(size_t position, std::string what) {
    error = {position, std::move(what)};
    return false;
  }

  void SkipComment() {
    if (at_ == text_.size() || text_[at_] != '#') return;
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
  }
  void SkipToFault() {
    while (at_ < text_.size()) {
      SkipComment();
      if (at_ == text_.size() || !(IsSpace(text_[at_]) || EndsFault(text_[at_]))) return;
      ++at_;
    }
  }
  void SkipSpaces() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
    SkipComment();
  }

  // The next word, empty at the end of the fault. start_ is where it begins.
  std::string_view Word() {
    SkipSpaces();
    start_ = at_;
    while (at_ < text_.size() && !IsSpace(text_[at_]) && !EndsFault(text_[at_])) ++at_;
    return text_.substr(start_, at_ - start_);
  }

  bool ReadFault() {
    const std::string_view first = Word();
    const size_t begin = start_;
    if (SameWord(first.substr(0, first.find('=')), "seed") && first.find('=') != first.npos) return ReadSeed(first);
    const KindInfo* info = FindKind(first);
    if (info == nullptr) return false;
    if (plan.faults.size() == kMostFaults) return Fail(begin, Format("there are more than %zu faults", kMostFaults));
    Fault fault;
    fault.kind = info->kind;
    size_t end = at_;
    for (std::string_view word = Word(); !word.empty(); word = Word()) {
      if (!ReadPair(word, *info, fault)) return false;
      end = at_;
    }
    fault.text = std::string(text_.substr(begin, end - begin));
    if (!CheckWhole(begin, *info, fault)) return false;
    plan.faults.push_back(std::move(fault));
    return true;
  }

  bool ReadSeed(std::string_view word) {
    const size_t equals = word.find('=');
    const auto value = Unsigned(word.substr(equals + 1), UINT64_MAX);
    if (!value) return Fail(start_ + equals + 1, "expected a whole number after seed=, as in seed=42");
    plan.seed = *value;
    const size_t after = at_;
    if (!Word().empty()) return Fail(start_, "expected \";\" after the seed");
    at_ = std::max(after, at_);
    return true;
  }

  const KindInfo* FindKind(std::string_view word) {
    for (const KindInfo& info : AllKinds()) {
      if (SameWord(info.name, word)) return &info;
    }
    std::vector<std::string_view> names;
    for (const KindInfo& info : AllKinds()) names.emplace_back(info.name);
    Fail(start_, Quoted(word.substr(0, 40)) + " is not a kind of fault; " +
                     Expected(word.substr(0, word.find('=')), names, "see weft faults --list"));
    return nullptr;
  }

  // "did you mean x?" or "expected one of ...".
  static std::string Expected(std::string_view word, const std::vector<std::string_view>& names,
                              std::string_view otherwise) {
    std::string lower;
    for (const char c : word.substr(0, 40)) lower += Lower(c);
    if (const auto nearest = NearestName(lower, names)) return "did you mean " + std::string(*nearest) + "?";
    std::string text = "expected ";
    for (size_t i = 0; i < names.size(); ++i) {
      text += i == 0 ? "" : i + 1 == names.size() ? " or " : ", ";
      text += names[i];
    }
    return otherwise.empty() ? text : text + "; " + std::string(otherwise);
  }

  bool ReadPair(std::string_view word, const KindInfo& info, Fault& fault) {
    const size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const KeyInfo* key = nullptr;
    std::vector<std::string_view> names;
    for (const KeyInfo& known : AllKeys()) {
      if (SameWord(known.name, name)) key = &known;
      if (info.takes & known.key) names.emplace_back(known.name);
    }
    if (key == nullptr) {
      return Fail(start_, Quoted(name.substr(0, 40)) + " is not a key of " + info.name + "; " +
                              Expected(name, names, ""));
    }
    if (!(info.takes & key->key)) {
      return Fail(start_, std::string(info.name) + " does not take " + key->name + "=; " + Expected("", names, ""));
    }
    if (equals == word.npos) return Fail(at_, std::string("expected =") + key->form + " after " + key->name);
    if (fault.given & key->key) return Fail(start_, std::string(key->name) + "= is given twice");
    fault.given |= key->key;
    value_at_ = start_ + equals + 1;
    return ReadValue(*key, word.substr(equals + 1), fault);
  }

  bool Wrong(const KeyInfo& key, std::string_view value, std::string_view expected) {
    return Fail(value_at_,
                Quoted(value.substr(0, 40)) + " is not a value for " + key.name + "=; " + std::string(expected));
  }

  bool ReadWord(const KeyInfo& key, std::string_view value, std::span<const faults::Word> words,
                std::string_view prefix, int& out) {
    std::string_view bare = value;
    if (bare.size() > prefix.size() && SameWord(bare.substr(0, prefix.size()), prefix))
      bare.remove_prefix(prefix.size());
    std::vector<std::string_view> names;
    for (const faults::Word& word : words) {
      if (SameWord(word.name, bare)) return out = word.value, true;
      names.emplace_back(word.name);
    }
    std::string upper;
    for (const char c : bare.substr(0, 40)) upper += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    if (const auto nearest = NearestName(upper, names)) {
      return Wrong(key, value, "did you mean " + std::string(*nearest) + "?");
    }
    return Wrong(key, value, Expected("", names, ""));
  }

  bool ReadTime(const KeyInfo& key, std::string_view value, Duration& out) {
    const auto time = Scaled(value, kTimeSuffixes, kLongestTime);
    if (!time) return Wrong(key, value, "expected a time with its unit: 250us, 5ms, 2s, 1m");
    out = Duration(static_cast<int64_t>(*time));
    return true;
  }

  bool ReadCount(const KeyInfo& key, std::string_view value, uint64_t& out) {
    const auto count = Unsigned(value, UINT64_MAX);
    if (!count || *count == 0) return Wrong(key, value, "expected a whole number from 1");
    out = *count;
    return true;
  }

  bool ReadPeer(const KeyInfo& key, std::string_view value, PeerSelector& out) {
    const char* expected = "expected an address or port: 192.0.2.7, 192.0.2.7:7471, [fd00::7]:7471, :7471";
    const auto parts = SplitHost(value);
    if (!parts) return Wrong(key, value, expected);
    if (parts->number) {
      const auto number = Unsigned(*parts->number, 65535);
      if (!number || *number == 0) return Wrong(key, value, expected);
      out.port = static_cast<uint16_t>(*number);
    }
    if (parts->host.empty()) return out.port != 0 || Wrong(key, value, expected);
    out.host = SocketAddress::Parse(parts->host, 0);
    return out.host.has_value() || Wrong(key, value, expected);
  }

  bool ReadProbability(const KeyInfo& key, std::string_view value, double& out) {
    constexpr Suffix kSuffixes[] = {{"", 1}, {"%", 0.01}};
    const auto probability = Scaled(value, kSuffixes, 1);
    if (!probability) return Wrong(key, value, "expected a number from 0 to 1, or from 0% to 100%");
    out = *probability;
    return true;
  }

  bool ReadErrno(const KeyInfo& key, std::string_view value, int& out) {
    const auto number = Unsigned(value, 4095);
    if (!number) return ReadWord(key, value, ErrnoWords(), "", out);
    if (*number == 0) return Wrong(key, value, "0 is not an error");
    out = static_cast<int>(*number);
    return true;
  }

  bool ReadValue(const KeyInfo& key, std::string_view value, Fault& fault) {
    if (value.empty())
      return Fail(value_at_, std::string("expected ") + key.form + " after " + key.name + "=: " + key.explanation);
    switch (key.key) {
      case kTime:
        return ReadTime(key, value, fault.time);
      case kJitter:
        return ReadTime(key, value, fault.jitter);
      case kFor:
        return ReadTime(key, value, fault.lasts);
      case kGiveUp:
        return ReadTime(key, value, fault.give_up);
      case kAfter:
        return ReadTime(key, value, fault.after);
      case kRate: {
        const auto rate = Scaled(value, kRateSuffixes, 1e15);
        if (!rate || *rate < 1)
          return Wrong(key, value, "expected bits per second with their unit: 500kbit, 10mbit, 1gbit");
        fault.bits_per_second = static_cast<uint64_t>(*rate);
        return true;
      }
      case kAfterBytes: {
        const auto bytes = Scaled(value, kByteSuffixes, 9e18);
        if (!bytes) return Wrong(key, value, "expected a number of bytes: 1000, 64K, 1M");
        fault.after_bytes = static_cast<uint64_t>(*bytes);
        return true;
      }
      case kStatus:
        return ReadWord(key, value, StatusWords(), "IBV_WC_", fault.status);
      case kErrno:
        return ReadErrno(key, value, fault.error);
      case kCall: {
        int call = 0;
        // "reg_mr" will do.
        const std::string name = Lower(value[0]) == 'i' ? std::string(value) : "ibv_" + std::string(value);
        if (!ReadWord(key, name, CallWords(), "", call)) return false;
        fault.call = static_cast<Call>(call);
        return true;
      }
      case kEvent:
        return ReadWord(key, value, EventWords(), "RDMA_CM_EVENT_", fault.event);
      case kQp: {
        const auto number = Unsigned(value, 0xffffff);
        if (!number) return Wrong(key, value, "expected a queue pair number of 24 bits: 17 or 0x11");
        fault.qp = static_cast<uint32_t>(*number);
        return true;
      }
      case kPeer:
        return ReadPeer(key, value, fault.peer);
      case kOpcode: {
        int opcode = 0;
        if (!ReadWord(key, value, OpcodeWords(), "IBV_WR_", opcode)) return false;
        fault.opcode = opcode;
        return true;
      }
      case kDevice:
        fault.device = std::string(value);
        return true;
      case kNth:
        return ReadCount(key, value, fault.nth);
      case kEvery:
        return ReadCount(key, value, fault.every);
      case kTimes:
        return ReadCount(key, value, fault.times);
      case kProbability:
        return ReadProbability(key, value, fault.probability);
    }
    return false;
  }

  bool CheckWhole(size_t begin, const KindInfo& info, const Fault& fault) {
    for (const KeyInfo& key : AllKeys()) {
      if ((info.needs & key.key) && !(fault.given & key.key)) {
        return Fail(at_, std::string(info.name) + " needs " + key.name + "=" + key.form + ": " + key.explanation);
      }
    }
    if (fault.nth != 0 && fault.every != 0) return Fail(begin, "nth= and every= exclude each other");
    if (fault.Has(kJitter) && fault.jitter > fault.time) return Fail(begin, "jitter= must not be longer than time=");
    if (fault.kind == Kind::kFail && (fault.qp || fault.opcode) && fault.call != Call::kPostSend &&
        fault.call != Call::kPostRecv && !(fault.qp && fault.call == Call::kModifyQp)) {
      return Fail(begin, "qp= and opcode= select calls of ibv_post_send and ibv_post_recv only");
    }
    if (fault.kind == Kind::kPortDown && fault.times > 1 && !fault.Has(kFor)) {
      return Fail(begin, "times= needs for=TIME here, so that the port comes up in between");
    }
    return true;
  }

  const std::string_view text_;
  size_t at_ = 0, start_ = 0, value_at_ = 0;
};

}  // namespace

bool PeerSelector::Matches(const SocketAddress& peer) const {
  if (port != 0 && peer.port() != port) return false;
  return !host || host->SameHost(peer);
}

std::string ParseError::Describe(std::string_view specification) const {
  const size_t at = std::min(position, specification.size());
  const size_t before = at == 0 ? specification.npos : specification.rfind('\n', at - 1);
  const size_t begin = before == specification.npos ? 0 : before + 1;
  const size_t end = std::min(specification.find('\n', begin), specification.size());
  // What a terminal shows of a long line; bytes that are no characters would move the caret.
  constexpr size_t kBefore = 60, kWidth = 100;
  const size_t from = at - begin > kBefore ? at - kBefore : begin;
  std::string line(specification.substr(from, std::min(end - from, kWidth)));
  for (char& c : line) {
    if (c < 0x20 || c == 0x7f) c = ' ';
  }
  return what + "\n  " + line + "\n  " + std::string(at - from, ' ') + "^";
}

Result<Plan, ParseError> Parse(std::string_view specification) {
  Parser parser(specification);
  if (!parser.Run()) return std::move(parser.error);
  return std::move(parser.plan);
}

Result<Plan, std::string> ParseSetting(const std::string& value) {
  std::string specification = value, origin = "WEFT_FAULTS";
  if (!value.empty() && value[0] == '@') {
    const std::string name = value.substr(1);
    std::ifstream file(name, std::ios::binary);
    specification.assign(kLongestFile + 1, '\0');
    file.read(specification.data(), static_cast<std::streamsize>(specification.size()));
    if (!file.is_open() || file.bad())
      return "WEFT_FAULTS=" + value + ": cannot read " + name + ": " + std::strerror(errno);
    specification.resize(static_cast<size_t>(file.gcount()));
    if (specification.size() > kLongestFile) return "WEFT_FAULTS=" + value + ": longer than a megabyte";
    origin = name;
  }
  auto plan = Parse(specification);
  if (plan.ok()) return std::move(*plan);
  const auto line = 1 + std::count(specification.begin(),
                                   specification.begin() +
                                       static_cast<ptrdiff_t>(std::min(plan.error().position, specification.size())),
                                   '\n');
  if (line > 1 || origin != "WEFT_FAULTS") origin += ":" + std::to_string(line);
  return origin + ": " + plan.error().Describe(specification);
}

}  // namespace weft::faults
