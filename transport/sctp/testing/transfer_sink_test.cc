#include "transport/sctp/testing/transfer_sink.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

#include "transport/sctp/testing/recorder.h"
#include "transport/sctp/testing/virtual_sctp.h"

namespace weft::transport::sctp {
namespace {

using std::chrono::seconds;

class AcceptingSink : public ReadyHandler {
 public:
  explicit AcceptingSink(sctp::Listener& listener) : listener_(listener) {}
  void OnReady(Interest) override {
    while (auto association = listener_.Accept()) {
      sink_ = std::make_shared<TransferSink>(std::move(*association));
      sink_->Watch(std::make_shared<WeakHandler>(sink_));
    }
  }
  void Close() { sink_.reset(); }

 private:
  sctp::Listener& listener_;
  std::shared_ptr<TransferSink> sink_;
};

TEST(TransferSink, TheLastReportWaitsForRoom) {
  VirtualSctp world(1);
  Sctp& client = world.AddHost({"10.1.0.1"});
  Sctp& server = world.AddHost({"10.1.0.2"});
  // Room for some hundred reports at each end.
  const Settings least{.send_buffer = 4096, .receive_buffer = 4096};
  auto listener = server.Listen(*SocketAddress::Parse("10.1.0.2", 5043), 1, least);
  ASSERT_TRUE(listener.ok()) << strerror(listener.error());
  auto accepting = std::make_shared<AcceptingSink>(**listener);
  (*listener)->Watch(accepting);
  auto source = Recorder::Of(client.Connect({{*SocketAddress::Parse("10.1.0.2", 5043)}, 9899}, 0, least).value());
  ASSERT_TRUE(world.network().RunUntil([&] { return source->up.has_value(); }, seconds(60)));
  source->association->SetReading(false);
  // The n-th transfer is of n bytes.
  constexpr uint64_t kTransfers = 500;
  TransferPattern pattern(7);
  for (uint64_t n = 1; n <= kTransfers; ++n) {
    const iovec bytes = pattern.At(0, n).at(0);
    source->Queue(0, kTransferBegin, {7, 0, 0, 0, 0, 0, 0, 0});
    source->Queue(0, kTransferBytes, {static_cast<const uint8_t*>(bytes.iov_base), static_cast<const uint8_t*>(bytes.iov_base) + n});
    source->Queue(0, kTransferEnd, {0});
  }
  ASSERT_TRUE(world.network().RunUntil([&] { return source->all_sent() && !source->association->HasUnacknowledged(); }, seconds(60)));
  source->association->SetReading(true);
  TransferReport last;
  const auto ended = [&] {
    if (!source->messages.empty()) std::memcpy(&last, source->messages.back().bytes.data(), sizeof last);
    return last.bytes == kTransfers && last.end;
  };
  EXPECT_TRUE(world.network().RunUntil(ended, seconds(60))) << source->messages.size() << " reports, the last of " << last.bytes << " bytes";
  EXPECT_LT(source->messages.size(), kTransfers) << "none had to wait";
  EXPECT_EQ(last.wrong_messages, 0u);
  accepting->Close();
}

}  // namespace
}  // namespace weft::transport::sctp
