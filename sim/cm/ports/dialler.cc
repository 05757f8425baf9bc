#include "sim/cm/ports/dialler.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "base/log.h"
#include "sim/cm/endpoint.h"
#include "sim/cm/ports/wish.h"

namespace weft::sim {
namespace {

constexpr std::chrono::milliseconds kLongestRetry{1000};

std::string HostOf(const transport::SocketAddress& address) {
  const std::string text = address.ToString();
  return text.substr(0, text.rfind(':'));
}

}  // namespace

Dialler::Dialler(const Surroundings& around, Begin begin, End end, const std::shared_ptr<QueuePair>& qp, uint32_t number,
                 const PeerChoice& choice, uint32_t send_number, bool again)
    : around_(around), begin_(std::move(begin)), end_(std::move(end)), qp_(qp), number_(number), choice_(choice), again_(again) {
  choice_.address.set_port(static_cast<uint16_t>(choice.number >> 8));
  parameters_ = {.ird = choice.ird, .ord = choice.ord};
  parameters_.private_data = Wish{choice.number, number, choice.service, choice.receive_number, send_number}.Serialize();
}

void Dialler::Start() {
  const auto qp = qp_.lock();
  if (qp == nullptr) return;
  auto endpoint = std::make_shared<EndpointImpl>(around_);
  if (!begin_(*this, endpoint)) return;
  endpoint_ = endpoint;
  endpoint->SetObserver(shared_from_this());
  if (endpoint->ConnectFor(qp, choice_.local, choice_.address, parameters_, choice_.delivery, /*dialled=*/true, shares_memory_) != 0) TryAgain();
}

void Dialler::OnCmEvent(CmEvent event) {
  switch (event.kind) {
    case CmEvent::Kind::kRejected:
    case CmEvent::Kind::kUnreachable:
    case CmEvent::Kind::kConnectError:
      if (event.error == ECONNREFUSED && event.private_data.empty() && choice_.address.is_loopback()) WarnOfLoopback();
      if (TraceEnabled()) Trace(Format("qp 0x%x: peer qp 0x%x is not there yet (%d)", number_, choice_.number, event.error));
      if (again_ && event.kind == CmEvent::Kind::kRejected) {
        if (const auto qp = qp_.lock()) qp->LosePeer();
        break;
      }
      // An old Weft takes an invitation to the host's memory (llp/weft_trailer.h) for a part of the wish, which it then does not understand.
      if (event.kind == CmEvent::Kind::kRejected) shares_memory_ = false;
      TryAgain();
      break;
    case CmEvent::Kind::kDisconnected:
      if (const auto endpoint = endpoint_.lock()) end_(*endpoint);
      break;
    default:
      break;  // the queue pair knows
  }
}

// A queue pair's port listens before anybody can know its number: it is gone, or it never was here.
void Dialler::WarnOfLoopback() {
  if (std::exchange(warned_, true)) return;
  LogWarning(Format("qp 0x%x: its peer's GID is %s, an address of this host, but no process here has qp 0x%x. Between hosts, both ends must use "
                    "a network device instead of weft_lo (weft devices lists them)",
                    number_, HostOf(choice_.address).c_str(), choice_.number));
}

void Dialler::TryAgain() {
  around_.network.RunAt(around_.network.Now() + retry_after_, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->Start();
  });
  retry_after_ = std::min<transport::Duration>(retry_after_ * 2, kLongestRetry);
}

}  // namespace weft::sim
