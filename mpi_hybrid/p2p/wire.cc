#include "mpi_hybrid/p2p/wire.h"

#include <endian.h>

#include <cstring>

namespace weft::mpi {
namespace {

constexpr char kMagic[8] = {'W', 'E', 'F', 'T', 'M', 'P', 'I', 1};

uint32_t Load32(const uint8_t* at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof(value));
  return le32toh(value);
}
uint64_t Load64(const uint8_t* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof(value));
  return le64toh(value);
}
void Store32(uint8_t* at, uint32_t value) {
  value = htole32(value);
  std::memcpy(at, &value, sizeof(value));
}
void Store64(uint8_t* at, uint64_t value) {
  value = htole64(value);
  std::memcpy(at, &value, sizeof(value));
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::optional<FrameHeader> FrameHeader::Parse(std::span<const uint8_t, kLength> bytes) {
  const uint8_t* at = bytes.data();
  if (at[0] < static_cast<uint8_t>(FrameKind::kEager) || at[0] > static_cast<uint8_t>(FrameKind::kCancelled)) return std::nullopt;
  if ((at[1] & ~(kFlagSynchronous | kFlagRefused)) != 0 || at[2] != 0 || at[3] != 0) return std::nullopt;
  FrameHeader header;
  header.kind = static_cast<FrameKind>(at[0]);
  header.flags = at[1];
  header.credit = Load32(at + 4);
  header.context = Load32(at + 8);
  header.tag = static_cast<int32_t>(Load32(at + 12));
  header.source = static_cast<int32_t>(Load32(at + 16));
  header.send_id = Load32(at + 20);
  header.receive_id = Load32(at + 24);
  header.length = Load64(at + 32);
  if (header.tag < 0 || header.source < 0 || Load32(at + 28) != 0 || header.length > kMostLength) return std::nullopt;
  return header;
}

void FrameHeader::SerializeTo(std::span<uint8_t, kLength> bytes) const {
  uint8_t* at = bytes.data();
  at[0] = static_cast<uint8_t>(kind);
  at[1] = flags;
  at[2] = at[3] = 0;
  Store32(at + 4, credit);
  Store32(at + 8, context);
  Store32(at + 12, static_cast<uint32_t>(tag));
  Store32(at + 16, static_cast<uint32_t>(source));
  Store32(at + 20, send_id);
  Store32(at + 24, receive_id);
  Store32(at + 28, 0);
  Store64(at + 32, length);
}

std::optional<JobSecret> JobSecret::FromHex(const char* digits) {
  JobSecret secret;
  if (std::strlen(digits) != 2 * sizeof(secret.bytes)) return std::nullopt;
  for (size_t i = 0; i < sizeof(secret.bytes); ++i) {
    const int high = HexDigit(digits[2 * i]), low = HexDigit(digits[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    secret.bytes[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return secret;
}

bool JobSecret::Matches(const JobSecret& other) const {
  volatile uint8_t difference = 0;
  for (size_t i = 0; i < sizeof(bytes); ++i) difference = difference | static_cast<uint8_t>(bytes[i] ^ other.bytes[i]);
  return difference == 0;
}

std::optional<Greeting> Greeting::Parse(std::span<const uint8_t, kLength> bytes) {
  const uint8_t* at = bytes.data();
  if (std::memcmp(at, kMagic, sizeof(kMagic)) != 0) return std::nullopt;
  Greeting greeting;
  std::memcpy(greeting.secret.bytes, at + 8, sizeof(greeting.secret.bytes));
  greeting.from = static_cast<int32_t>(Load32(at + 24));
  greeting.to = static_cast<int32_t>(Load32(at + 28));
  greeting.window = Load64(at + 32);
  const uint32_t answer = Load32(at + 40);
  if (answer > static_cast<uint32_t>(Answer::kBusy) || Load32(at + 44) != 0) return std::nullopt;
  greeting.answer = static_cast<Answer>(answer);
  return greeting;
}

void Greeting::SerializeTo(std::span<uint8_t, kLength> bytes) const {
  uint8_t* at = bytes.data();
  std::memcpy(at, kMagic, sizeof(kMagic));
  std::memcpy(at + 8, secret.bytes, sizeof(secret.bytes));
  Store32(at + 24, static_cast<uint32_t>(from));
  Store32(at + 28, static_cast<uint32_t>(to));
  Store64(at + 32, window);
  Store32(at + 40, static_cast<uint32_t>(answer));
  Store32(at + 44, 0);
}

}  // namespace weft::mpi
