#include "mpi_hybrid/p2p/greeting/greeting.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "mpi_hybrid/p2p/engine/little_endian.h"

namespace weft::mpi {
namespace {

constexpr uint8_t kMagic[8] = {'W', 'E', 'F', 'T', 'M', 'P', 'I', 4};
constexpr char kConnector[] = "weft-p2p connector", kListener[] = "weft-p2p listener";
constexpr size_t kProof = sizeof(JobSecret::Proof);
constexpr size_t kHelloSaid = Hello::kLength - kProof, kAnswerSaid = Answer::kLength - kProof;

constexpr size_t kName = 20;
// Where what is in a Challenge.
constexpr size_t kWho = sizeof(kMagic) + sizeof(Nonce);
static_assert(kWho + kName == Challenge::kLength);
// ... in a Hello.
constexpr size_t kFrom = 8, kTo = kFrom + kName, kBond = kTo + kName, kWindow = kBond + sizeof(JobId), kNonce = kWindow + 8;
static_assert(kNonce + sizeof(Nonce) == kHelloSaid);

void WriteName(const ProcessName& name, uint8_t* at) {
  std::copy(name.job.bytes.begin(), name.job.bytes.end(), at);
  Store32(at + sizeof(JobId), static_cast<uint32_t>(name.rank));
}

ProcessName ReadName(const uint8_t* at) {
  ProcessName name{.job = {}, .rank = static_cast<int32_t>(Load32(at + sizeof(JobId)))};
  std::copy_n(at, sizeof(JobId), name.job.bytes.begin());
  return name;
}

bool HasMagic(const uint8_t* at) { return std::memcmp(at, kMagic, sizeof(kMagic)) == 0; }

// What both said until the connector proves itself.
std::array<uint8_t, Challenge::kLength + kHelloSaid> SaidBefore(std::span<const uint8_t, Challenge::kLength> challenge,
                                                                std::span<const uint8_t, Hello::kLength> hello) {
  std::array<uint8_t, Challenge::kLength + kHelloSaid> said;
  std::copy(hello.begin(), hello.begin() + kHelloSaid, std::copy(challenge.begin(), challenge.end(), said.begin()));
  return said;
}

// ... and until the listener does.
std::array<uint8_t, Challenge::kLength + Hello::kLength + kAnswerSaid> SaidBefore(
    std::span<const uint8_t, Challenge::kLength> challenge, std::span<const uint8_t, Hello::kLength> hello,
    std::span<const uint8_t, Answer::kLength> answer) {
  std::array<uint8_t, Challenge::kLength + Hello::kLength + kAnswerSaid> said;
  auto at = std::copy(challenge.begin(), challenge.end(), said.begin());
  at = std::copy(hello.begin(), hello.end(), at);
  std::copy(answer.begin(), answer.begin() + kAnswerSaid, at);
  return said;
}

}  // namespace

void Challenge::Write(const Nonce& nonce, const ProcessName& who, Bytes bytes) {
  std::copy(nonce.begin(), nonce.end(), std::copy(std::begin(kMagic), std::end(kMagic), bytes.begin()));
  WriteName(who, bytes.data() + kWho);
}

bool Challenge::BeginsOne(std::span<const uint8_t> bytes) {
  return std::memcmp(bytes.data(), kMagic, std::min(bytes.size(), sizeof(kMagic))) == 0;
}

std::optional<ProcessName> Challenge::Read(std::span<const uint8_t, kLength> bytes) {
  if (!HasMagic(bytes.data())) return std::nullopt;
  return ReadName(bytes.data() + kWho);
}

void Hello::Write(const JobSecret& secret, std::span<const uint8_t, Challenge::kLength> challenge,
                  std::span<uint8_t, kLength> bytes) const {
  uint8_t* at = bytes.data();
  std::memcpy(at, kMagic, sizeof(kMagic));
  WriteName(from, at + kFrom);
  WriteName(to, at + kTo);
  std::copy(bond.bytes.begin(), bond.bytes.end(), at + kBond);
  Store64(at + kWindow, window);
  const Nonce nonce = NewNonce();
  std::copy(nonce.begin(), nonce.end(), at + kNonce);
  const JobSecret::Proof proof = secret.Prove(kConnector, SaidBefore(challenge, bytes));
  std::copy(proof.begin(), proof.end(), at + kHelloSaid);
}

std::optional<Hello> Hello::Read(std::span<const uint8_t, kLength> bytes) {
  const uint8_t* at = bytes.data();
  if (!HasMagic(at)) return std::nullopt;
  Hello hello{.from = ReadName(at + kFrom), .to = ReadName(at + kTo), .bond = {}, .window = Load64(at + kWindow)};
  std::copy_n(at + kBond, hello.bond.bytes.size(), hello.bond.bytes.begin());
  return hello;
}

bool Hello::IsProven(const JobSecret& secret, std::span<const uint8_t, Challenge::kLength> challenge,
                     std::span<const uint8_t, kLength> bytes) {
  return secret.Verifies(bytes.last<kProof>(), kConnector, SaidBefore(challenge, bytes));
}

std::span<const uint8_t, sizeof(Nonce)> Hello::NonceIn(std::span<const uint8_t, kLength> bytes) {
  return bytes.subspan<kNonce, sizeof(Nonce)>();
}

void Answer::Write(const JobSecret& secret, std::span<const uint8_t, Challenge::kLength> challenge,
                   std::span<const uint8_t, Hello::kLength> hello, std::span<uint8_t, kLength> bytes) const {
  uint8_t* at = bytes.data();
  Store64(at, window);
  Store32(at + 8, static_cast<uint32_t>(kind));
  Store32(at + 12, 0);
  const JobSecret::Proof proof = secret.Prove(kListener, SaidBefore(challenge, hello, bytes));
  std::copy(proof.begin(), proof.end(), at + kAnswerSaid);
}

std::optional<Answer> Answer::Read(const JobSecret& secret, std::span<const uint8_t, Challenge::kLength> challenge,
                                   std::span<const uint8_t, Hello::kLength> hello,
                                   std::span<const uint8_t, kLength> bytes) {
  const uint8_t* at = bytes.data();
  const uint32_t kind = Load32(at + 8);
  if (kind != static_cast<uint32_t>(Kind::kWelcome) && kind != static_cast<uint32_t>(Kind::kBusy)) return std::nullopt;
  if (Load32(at + 12) != 0 || !secret.Verifies(bytes.last<kProof>(), kListener, SaidBefore(challenge, hello, bytes)))
    return std::nullopt;
  return Answer{.window = Load64(at), .kind = static_cast<Kind>(kind)};
}

}  // namespace weft::mpi
