// Messages of one-sided communication, from an origin that is not to be trusted, against windows between which nothing may be
// touched.
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "mpi_hybrid/rma/apply.h"

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
    const ByteSpan body = message.subspan(kHeaderBytes);
    uint8_t fetched[DataRoom(1)];
    size_t bytes = 0;
    Applied applied = Applied::kMalformed;
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
