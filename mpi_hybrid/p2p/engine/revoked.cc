#include <algorithm>
#include <vector>

#include "mpi_hybrid/p2p/engine/engine.h"
#include "mpi_hybrid/p2p/engine/pool.h"
#include "mpi_hybrid/p2p/request/news.h"

// Communicators that are revoked.
namespace weft::mpi {

Error Engine::RevokedError() { return Error(MPIX_ERR_REVOKED, "only MPIX_Comm_shrink, MPIX_Comm_agree and calls that need no other rank still work"); }

void Engine::Revoke(Comm& comm) {
  if (comm.revoked) return;
  comm.revoked = true;
  revoked_.insert(ContextPool::IdOf(comm.receive_context));
  if (comm.local_comm) Revoke(*comm.local_comm);
  std::vector<ReceiveRequest*> posted;
  posted_.ForEach([&](MatchHook& hook) {
    auto* receive = static_cast<ReceiveRequest*>(hook.owner);
    if (IsRevoked(receive->key.context)) posted.push_back(receive);
  });
  std::sort(posted.begin(), posted.end(), [](const auto* a, const auto* b) { return a->hook.sequence < b->hook.sequence; });
  for (ReceiveRequest* receive : posted) {
    RemovePosted(receive->hook);
    Fail(*receive, RevokedError());
  }
  std::vector<Message*> waiting;
  ForEachWaiting([&](Message& message) {
    if (IsRevoked(message.envelope.context)) waiting.push_back(&message);
  });
  for (Message* message : waiting) Refuse(*message, message->kind == FrameKind::kEager && message->arrived < message->length);
  RetryEarly();
  News::Tell();
}

void Engine::Refuse(Message& message, bool arrives) {
  RemoveWaiting(message);
  message.taken = true;
  if (message.send != nullptr) {
    Fail(*message.send, RevokedError());
    return message.Drop();
  }
  if (message.link == nullptr) {
    self_stored_ -= message.length;
    return message.Drop();
  }
  Link& link = *message.link;
  if ((message.kind == FrameKind::kRequest || message.synchronous) && !link.is_gone()) {
    link.SendControl({.kind = FrameKind::kRevoked, .send_id = message.send_id});
  }
  if (message.kind == FrameKind::kRequest) return message.Drop();
  if (!arrives) {
    link.GiveBack(Link::CostOf(message.length));
    return message.Drop();
  }
  // Nobody's receive takes the rest.
  ReceiveRequest* nobody = Pool<ReceiveRequest>::Take();
  nobody->engine = this;
  nobody->payload = Payload();
  nobody->capacity = 0;
  nobody->length = 0;
  nobody->link = &link;
  nobody->stage = ReceiveRequest::Stage::kArriving;
  message.receive = nobody;
}

}  // namespace weft::mpi
