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
inline constexpr uint16_t kGroupUdpPort = 14791;         // UDP port of all groups' datagrams, on every host

struct ReceivedDatagram {
  DatagramHeader header;
  ByteSpan payload;  // valid during the call
  const transport::SocketAddress& from;
  const transport::SocketAddress& to;  // no family: unknown
};

// A queue pair as its ports see it.
class DatagramReceiver {
 public:
  virtual ~DatagramReceiver() = default;
  // Called with the port's lock held; must not call the port.
  virtual void OnDatagram(const ReceivedDatagram& datagram) = 0;
  // The socket accepts datagrams again (see DatagramPort::AwaitWritable). Called without locks, and possibly too often.
  virtual void OnWritable() = 0;
};

// Owns a UDP socket of the RNIC: receives datagrams and hands each to its receivers. Thread safe.
class DatagramSocketOwner : public transport::ReadyHandler, public std::enable_shared_from_this<DatagramSocketOwner> {
 public:
  ~DatagramSocketOwner() override;

  // Receives waiting datagrams on the caller's thread, unless another thread is doing so. `spinning`: the caller will
  // call again at once.
  void Drive(bool spinning);
  transport::DatagramSocket& socket() { return *socket_; }
  transport::WatchId watch() const { return watch_.load(); }

 protected:
  DatagramSocketOwner(transport::Network& network, std::unique_ptr<transport::DatagramSocket> socket);
  void Start();  // once a shared_ptr owns it
  void Stop();   // no handler starts after this call; one may still be running
  // Called with receive_mutex_ held.
  virtual void Dispatch(const ReceivedDatagram& datagram) = 0;
  virtual void OnWritable() {}
  void WantWritable(bool want);

  // Guards staging_ and the receivers of derived classes; held while datagrams are handed out.
  std::mutex receive_mutex_;

 private:
  static constexpr size_t kBatch = 32;
  // One byte more than allowed, to detect a datagram that is too long.
  static constexpr size_t kSlot = DatagramHeader::kLength + kMaxDatagram + 8;

  void OnReady(transport::Interest ready) override;
  void Receive();

  transport::Network& network_;
  const std::unique_ptr<transport::DatagramSocket> socket_;
  std::atomic<transport::WatchId> watch_{0};
  std::unique_ptr<uint8_t[]> staging_;  // not touched until the first datagram
  std::array<transport::IncomingDatagram, kBatch> incoming_;
};

// The port that up to 256 queue pairs of the process share. The number of each is the UDP port and, in the lower 8
// bits, an index.
class DatagramPort final : public DatagramSocketOwner {
 public:
  // Opens a port at the wildcard address, for both families if the host has both. Errors: EMFILE ...
  static Result<std::shared_ptr<DatagramPort>, int> Open(transport::Network& network);
  DatagramPort(transport::Network& network, std::unique_ptr<transport::DatagramSocket> socket);

  static constexpr uint32_t kIndices = 256;
  static uint16_t UdpPortOf(uint32_t number) { return static_cast<uint16_t>(number >> 8); }
  uint32_t first_number() const { return first_number_; }

  // The next unused index after the last one given for which `usable(number)` is true; 0: none.
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
  // It gets no datagram after this call.
  void Remove(uint32_t number);
  bool empty();
  void Close() { Stop(); }

  // Calls OnWritable() of `receiver` once.
  void AwaitWritable(std::weak_ptr<DatagramReceiver> receiver);

 private:
  void Dispatch(const ReceivedDatagram& datagram) override;
  void OnWritable() override;

  const uint32_t first_number_;
  std::array<DatagramReceiver*, kIndices> receivers_{};  // guarded by receive_mutex_, as is next_
  uint32_t next_ = 0;
  std::mutex blocked_mutex_;  // guards blocked_
  std::vector<std::weak_ptr<DatagramReceiver>> blocked_;
};

}  // namespace weft::sim

#endif  // SIM_DATAGRAM_PORT_H_
