#ifndef IMPI_AGENT_PACKET_STORE_H_
#define IMPI_AGENT_PACKET_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace weft::impi {

// Memory of long packets, which is used again when a packet is gone. The heap would give it back to the kernel and get it anew, with clear pages, for each
// few packets. Shorter packets are the heap's: in the place of a long one they would occupy more than stands on their account (agent.h).
class PacketStore {
 public:
  struct Return {
    PacketStore* store = nullptr;  // null: the heap

    void operator()(uint8_t* bytes) const {
      std::unique_ptr<uint8_t[]> gone(bytes);
      if (store != nullptr && store->kept_.size() < store->most_) store->kept_.push_back(std::move(gone));
    }
  };
  using Buffer = std::unique_ptr<uint8_t[], Return>;

  // `longest`: bytes of a packet. `most`: bytes that are kept.
  PacketStore(size_t longest, size_t most) : longest_(longest), most_(most / longest) {}
  PacketStore(const PacketStore&) = delete;
  PacketStore& operator=(const PacketStore&) = delete;

  static Buffer FromHeap(size_t size) { return Buffer(new uint8_t[size], {}); }
  // At least `size` bytes, which have any value. The store outlives them.
  Buffer Take(size_t size) {
    if (size > longest_ || size <= longest_ / 2) return FromHeap(size);
    if (kept_.empty()) return Buffer(new uint8_t[longest_], {this});
    Buffer taken(kept_.back().release(), {this});
    kept_.pop_back();
    return taken;
  }
  size_t kept() const { return kept_.size(); }

 private:
  const size_t longest_;  // bytes
  const size_t most_;     // packets
  std::vector<std::unique_ptr<uint8_t[]>> kept_;
};

}  // namespace weft::impi

#endif  // IMPI_AGENT_PACKET_STORE_H_
