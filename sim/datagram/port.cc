#include "sim/datagram/port.h"

#include <utility>

#include "base/log.h"
#include "transport/datagram_capture.h"

namespace weft::sim {
namespace {

constexpr int kBatchesPerTurn = 8;  // then others get their turn

}  // namespace

DatagramSocketOwner::DatagramSocketOwner(transport::Network& network, std::unique_ptr<transport::DatagramSocket> socket)
    : network_(network), socket_(std::move(socket)), staging_(new uint8_t[kBatch * kSlot]) {
  for (size_t i = 0; i < kBatch; ++i) incoming_[i].room = {staging_.get() + i * kSlot, kSlot};
}

DatagramSocketOwner::~DatagramSocketOwner() { Stop(); }

void DatagramSocketOwner::Start() { watch_ = network_.Watch(*socket_, {.read = true}, shared_from_this()); }

void DatagramSocketOwner::Stop() {
  if (const transport::WatchId watch = watch_.exchange(0)) network_.Unwatch(watch);
}

void DatagramSocketOwner::WantWritable(bool want) {
  if (const transport::WatchId watch = watch_.load()) network_.SetInterest(watch, {.read = true, .write = want});
}

void DatagramSocketOwner::OnReady(transport::Interest ready) {
  if (ready.write) OnWritable();
  if (!ready.read) return;
  std::lock_guard lock(receive_mutex_);
  Receive();
}

void DatagramSocketOwner::Drive(bool spinning) {
  std::unique_lock lock(receive_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  Receive();
  if (spinning) network_.Lend(watch_.load());
}

void DatagramSocketOwner::Receive() {
  for (int turn = 0; turn < kBatchesPerTurn; ++turn) {
    const size_t count = socket_->Receive(incoming_);
    for (size_t i = 0; i < count; ++i) {
      const transport::IncomingDatagram& datagram = incoming_[i];
      const ByteSpan bytes(static_cast<const uint8_t*>(datagram.room.iov_base), datagram.length);
      const auto header = datagram.cut_off ? std::nullopt : DatagramHeader::Parse(bytes);
      if (!header || header->length > kMaxDatagram) {
        if (TraceEnabled()) Trace(Format("dropped %zu bytes from %s: no datagram of ours", bytes.size(), datagram.from.ToString().c_str()));
        continue;
      }
      if (TraceEnabled()) Trace(Format("datagram from %s: %s", datagram.from.ToString().c_str(), header->ToString().c_str()));
      Dispatch({*header, bytes.subspan(DatagramHeader::kLength), datagram.from, datagram.to});
    }
    if (count < kBatch) return;
  }
}

Result<std::shared_ptr<DatagramPort>, int> DatagramPort::Open(transport::Network& network) {
  auto socket = network.OpenDatagram(transport::SocketAddress::Parse("::", 0).value(), {});
  if (!socket.ok()) {  // a host without IPv6
    socket = network.OpenDatagram(transport::SocketAddress::Parse("0.0.0.0", 0).value(), {});
  }
  if (!socket.ok()) return socket.error();
  auto port = std::make_shared<DatagramPort>(network, transport::CaptureIfAsked(std::move(socket.value()), DescribeDatagram));
  port->Start();
  return port;
}

DatagramPort::DatagramPort(transport::Network& network, std::unique_ptr<transport::DatagramSocket> socket)
    : DatagramSocketOwner(network, std::move(socket)),
      first_number_(uint32_t{DatagramSocketOwner::socket().LocalAddress().port()} << 8) {}

void DatagramPort::Add(uint32_t number, DatagramReceiver* receiver) {
  std::lock_guard lock(receive_mutex_);
  receivers_[number % kIndices] = receiver;
}

void DatagramPort::Remove(uint32_t number) {
  std::lock_guard lock(receive_mutex_);
  receivers_[number % kIndices] = nullptr;
}

bool DatagramPort::empty() {
  std::lock_guard lock(receive_mutex_);
  for (const DatagramReceiver* receiver : receivers_) {
    if (receiver != nullptr) return false;
  }
  return true;
}

void DatagramPort::Dispatch(const ReceivedDatagram& datagram) {
  if (datagram.header.destination - first_number_ >= kIndices) return;
  DatagramReceiver* receiver = receivers_[datagram.header.destination % kIndices];
  if (receiver != nullptr) receiver->OnDatagram(datagram);
}

void DatagramPort::AwaitWritable(std::weak_ptr<DatagramReceiver> receiver) {
  std::lock_guard lock(blocked_mutex_);
  blocked_.push_back(std::move(receiver));
  WantWritable(true);
}

void DatagramPort::OnWritable() {
  std::vector<std::weak_ptr<DatagramReceiver>> blocked;
  {
    std::lock_guard lock(blocked_mutex_);
    blocked.swap(blocked_);
    WantWritable(false);
  }
  for (const auto& weak : blocked) {
    if (const auto receiver = weak.lock()) receiver->OnWritable();
  }
}

}  // namespace weft::sim
