#ifndef SIM_CM_LISTENER_H_
#define SIM_CM_LISTENER_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_set>

#include "sim/cm/api.h"
#include "sim/cm/endpoint.h"
#include "sim/cm/surroundings.h"
#include "sim/cm/waiting_room.h"
#include "transport/network.h"

namespace weft::sim {

// Accepts connections and announces their requests to a program. The backlog limits how many requests are announced but
// not fetched (as in drivers/infiniband/core/ucma.c). Thread safe.
class ListenerImpl final : public CmListener,
                           public RequestSink,
                           public transport::ReadyHandler,
                           public std::enable_shared_from_this<ListenerImpl> {
 public:
  ListenerImpl(const Surroundings& around, std::unique_ptr<llp::Listener> sessions, int backlog,
               std::shared_ptr<CmObserver> observer);
  ~ListenerImpl() override;

  void Start();

  transport::SocketAddress local_address() const override { return local_; }
  void Close() override;

 private:
  void OnReady(transport::Interest) override;
  void OnRequest(std::shared_ptr<EndpointImpl> endpoint) override;
  void OnFetched(const std::shared_ptr<EndpointImpl>& endpoint) override;
  void OnLost(EndpointImpl& endpoint) override;
  void OnDone(EndpointImpl& endpoint) override;
  bool AcceptOne();  // false: no connection is waiting, or there is no room
  bool MakeRoom();   // drops a connection and its descriptor. False: none may be dropped
  void TurnAway(EndpointImpl& endpoint, const char* among);
  void Announce();  // announces waiting requests to the program

  const Surroundings around_;
  const transport::SocketAddress local_;
  const size_t backlog_;
  std::recursive_mutex delivery_mutex_;  // one announcement at a time; before mutex_
  std::mutex mutex_;                     // guards everything below; no endpoint is called or destroyed while it is held
  std::unique_ptr<llp::Listener> sessions_;
  std::shared_ptr<CmObserver> observer_;
  WaitingRoom<EndpointImpl> silent_;              // their request is not complete
  WaitingRoom<EndpointImpl> untold_;              // their request is complete, but not announced
  std::unordered_set<const EndpointImpl*> told_;  // announced, but not fetched: these count against the backlog
  WaitingRoom<EndpointImpl, std::weak_ptr> fetched_;  // fetched, but not answered
};

}  // namespace weft::sim

#endif  // SIM_CM_LISTENER_H_
