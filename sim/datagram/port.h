#ifndef SIM_DATAGRAM_PORT_H_
#define SIM_DATAGRAM_PORT_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "sim/datagram/header.h"
#include "transport/network.h"

namespace weft::sim {

inline constexpr uint32_t kMaxDatagram = 4096;           // bytes of payload: the largest MTU of a port
inline constexpr uint32_t kGroupQueuePair = 0xffffff;    // the QPN of all members of a group
inline constexpr uint16_t kGroupUdpPort = 14791;         // where groups' datagrams go, on every host

struct ReceivedDatagram {
  DatagramHeader header;
  ByteSpan payload;  // valid during the call
  const transport::SocketAddress& from;
  const transport::SocketAddress& to;  // no family: not known
};

// A queue pair as its ports see it.
class DatagramReceiver {
 public:
  virtual ~DatagramReceiver() = default;
  // With the port's lock held; must not call the port.
  virtual void OnDatagram(const ReceivedDatagram& datagram) = 0;
  // The socket takes datagrams again (see DatagramPort::AwaitWritable). Without locks, possibly without need.
  virtual void OnWritable() = 0;
};

// Owns a UDP socket of the RNIC: takes what comes and gives each datagram to its receivers. Thread safe.
class DatagramSocketOwner : public transport::ReadyHandler, public std::enable_shared_from_this<DatagramSocketOwner> {
 public:
  ~DatagramSocketOwner() override;

  // Takes what waits on the caller's thread, if nobody else is at it. `spinning`: the caller will be back at once.
  void Drive(bool spinning);
  transport::DatagramSocket& socket() { return *socket_; }
  transport::WatchId watch() const { return watch_.load(); }

 protected:
  DatagramSocketOwner(transport::Network& network, std::unique_ptr<transport::DatagramSocket> socket);
  void Start();  // once a shared_ptr owns it
  void Stop();   // no handler runs from here on but one that does already
  // With receive_mutex_ held.
  virtual void Dispatch(const ReceivedDatagram& datagram) = 0;
  virtual void OnWritable() {}
  void WantWritable(bool want);

  std::mutex receive_mutex_;  // guards staging_ and the receivers of derived classes; held while datagrams are handed out

 private:
  static constexpr size_t kBatch = 32;
  // One byte more than is allowed shows that a datagram is too long.
  static constexpr size_t kSlot = DatagramHeader::kLength + kMaxDatagram + 8;

  void OnReady(transport::Interest ready) override;
  void Receive();

  transport::Network& network_;
  const std::unique_ptr<transport::DatagramSocket> socket_;
  std::atomic<transport::WatchId> watch_{0};
  std::unique_ptr<uint8_t[]> staging_;  // not touched until the first datagram
  std::array<transport::IncomingDatagram, kBatch> incoming_;
};

// The port that up to 256 queue pairs of the process share: their numbers are the UDP port and, in the lower 8 bits, an index.
class DatagramPort final : public DatagramSocketOwner {
 public:
  // On the wildcard address, both families where the host has both. Errors: EMFILE ...
  static Result<std::shared_ptr<DatagramPort>, int> Open(transport::Network& network);
  DatagramPort(transport::Network& network, std::unique_ptr<transport::DatagramSocket> socket);

  static constexpr uint32_t kIndices = 256;
  static uint16_t UdpPortOf(uint32_t number) { return static_cast<uint16_t>(number >> 8); }
  uint32_t first_number() const { return first_number_; }

  // The next index after the one given last that nobody has, tried by `usable(number)`; 0: none.
  template <typename Usable>
  uint32_t FreeNumber(Usable usable) {
    std::lock_guard lock(receive_mutex_);
    for (uint32_t i = 0; i < kIndices; ++i) {
      const uint32_t index = (next_ + i) % kIndices;
      if (receivers_[index] != nullptr || !usable(first_number_ + index)) continue;
      next_ = index + 1;
      return first_number_ + index;
    }
    return 0;
  }
  void Add(uint32_t number, DatagramReceiver* receiver);
  // No datagram reaches it from here on.
  void Remove(uint32_t number);
  bool empty();
  void Close() { Stop(); }

  // OnWritable() is called for `receiver` once.
  void AwaitWritable(std::weak_ptr<DatagramReceiver> receiver);

 private:
  void Dispatch(const ReceivedDatagram& datagram) override;
  void OnWritable() override;

  const uint32_t first_number_;
  std::array<DatagramReceiver*, kIndices> receivers_{};  // guarded by receive_mutex_, as next_
  uint32_t next_ = 0;
  std::mutex blocked_mutex_;  // guards blocked_
  std::vector<std::weak_ptr<DatagramReceiver>> blocked_;
};

}  // namespace weft::sim

#endif  // SIM_DATAGRAM_PORT_H_
