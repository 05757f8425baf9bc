// Messages of one-sided communication, from an origin that is not to be trusted, against windows between which nothing may be
// touched.
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#include "base/check.h"
#include "mpi_hybrid/rma/apply.h"
#include "mpi_hybrid/rma/fence_notice.h"

using namespace weft;
using namespace weft::mpi::rma;

namespace {

constexpr size_t kGuard = 256, kWindow = 4096;

// Of its own allocation, so that AddressSanitizer sees each byte beside it; without, guards do.
struct Memory {
  std::unique_ptr<uint8_t[]> bytes{new uint8_t[kGuard + kWindow + kGuard]};
  Memory() {
    std::memset(bytes.get(), 0xa5, kGuard + kWindow + kGuard);
    std::memset(window(), 0, kWindow);
  }
  uint8_t* window() { return bytes.get() + kGuard; }
  ~Memory() {
    for (size_t i = 0; i < kGuard; ++i) {
      WEFT_CHECK(bytes[i] == 0xa5);
      WEFT_CHECK(bytes[kGuard + kWindow + i] == 0xa5);
    }
  }
};

// A message of a fence, and a few more, made of what follows in the body: each that wants a reply has one at the latest when this rank comes to its fence.
void Fence(MessageHeader header, ByteSpan body) {
  FenceNotice notice;
  uint32_t unanswered = 0, last = 0;
  const auto answered = [&](const std::optional<FenceNotice::Answer>& answer) {
    if (!answer) return;
    WEFT_CHECK(unanswered > 0);
    --unanswered;
  };
  for (size_t at = 0; at + 4 <= body.size(); at += 5) {
    const auto number = ParseFence(body.subspan(at, 4));
    WEFT_CHECK(number);
    std::optional<FenceNotice::Asker> asker;
    if (header.wants_reply) asker = {1, header.reply_slot};
    std::optional<FenceNotice::Answer> answer;
    unanswered += header.wants_reply;
    if (!notice.OnMessage(*number, header.promises, asker, &answer)) return;
    answered(answer);
    last = *number;
    const uint8_t next = at + 4 < body.size() ? body[at + 4] : 0;
    header.promises = next & 1;
    header.wants_reply = next & 2;
    if (next & 4) answered(notice.Enter(next & 8, next & 16).answer);
    if (next & 32) notice.OnReply(*number, next & 64 ? ReplyStatus::kBusy : ReplyStatus::kDone);
  }
  for (uint32_t i = 0; i < 64 && last < 64; ++i) answered(notice.Enter(false, false).answer);
  WEFT_CHECK(last >= 64 || unanswered == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Memory memory;
  TargetWindow window;
  window.base = memory.window();
  window.size = kWindow;
  const ByteSpan message(data, size);
  const auto header = ParseHeader(message);
  if (header) {
    // Dynamic windows name addresses; an input cannot know them, so its offsets are taken from the window's.
    window.dynamic = header->window % 2 == 1;
    if (window.dynamic) window.regions.push_back({nullptr, kWindow / 2, nullptr});
    if (window.dynamic) window.regions[0].base = memory.window();
    ByteSpan body = message.subspan(kHeaderBytes);
    if (header->with_fence) {
      const auto fence = TakeFenceBehind(&body);
      if (!fence) return 0;
      WEFT_CHECK(!fence->asks || fence->reply_slot < kSlots);
    }
    uint8_t fetched[DataRoom(1)];
    size_t bytes = 0;
    Applied applied = Applied::kMalformed;
    [[maybe_unused]] volatile uint8_t touched = 0;
    switch (header->kind) {
      case MessageKind::kPut:
      case MessageKind::kGet:
      case MessageKind::kAccumulate:
      case MessageKind::kGetAccumulate:
        applied = ApplyData(*header, body, window, fetched, &bytes);
        break;
      case MessageKind::kCompareAndSwap:
        applied = ApplyCompareAndSwap(*header, body, window, fetched, &bytes);
        break;
      case MessageKind::kGetByWrite:
        if (const auto get = ParseGetByWrite(body)) {
          const uint8_t* const from = window.Resolve(get->offset, get->bytes);
          for (uint32_t i = 0; from != nullptr && i < get->bytes; ++i) touched = touched + from[i];
        }
        break;
      case MessageKind::kFence:
        Fence(*header, body);
        break;
      default:
        ParseFindRegion(body);
    }
    WEFT_CHECK(bytes <= sizeof fetched);
    WEFT_CHECK(applied == Applied::kDone || bytes == 0);
  }
  ParseReply(message);
  ParseHello(message);
  ParseWelcome(message);
  return 0;
}
