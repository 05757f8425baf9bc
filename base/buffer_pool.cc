#include "base/buffer_pool.h"

#include <array>

namespace weft {
namespace {

// Without a destructor, so that reaching it costs no look whether one is registered.
struct OwnBlocks {
  std::array<uint8_t*, 2> blocks{};
  size_t count = 0;
  bool registered = false;  // the thread's end frees them
  bool over = false;        // ... and has
};
constinit thread_local OwnBlocks t_own;

struct Reaper {
  void Register() { t_own.registered = true; }
  ~Reaper() {
    t_own.over = true;
    while (t_own.count != 0) delete[] t_own.blocks[--t_own.count];
  }
};
thread_local Reaper t_reaper;

}  // namespace

uint8_t* BufferPool::TakeOwn() {
  OwnBlocks& own = t_own;
  return own.count == 0 ? nullptr : own.blocks[--own.count];
}

bool BufferPool::KeepOwn(uint8_t* block) {
  OwnBlocks& own = t_own;
  if (own.count == own.blocks.size() || own.over) return false;
  if (!own.registered) [[unlikely]] t_reaper.Register();
  own.blocks[own.count++] = block;
  return true;
}

}  // namespace weft
