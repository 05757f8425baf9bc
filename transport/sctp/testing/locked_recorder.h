#ifndef TRANSPORT_SCTP_TESTING_LOCKED_RECORDER_H_
#define TRANSPORT_SCTP_TESTING_LOCKED_RECORDER_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "transport/sctp/testing/recorder.h"

namespace weft::transport::sctp {

// A recorder with a lock, so that its calls and the test's queries exclude each other.
class Locked : public ReadyHandler {
 public:
  explicit Locked(std::unique_ptr<Association> association) { recorder_.association = std::move(association); }
  static std::shared_ptr<Locked> Of(std::unique_ptr<Association> association) {
    auto locked = std::make_shared<Locked>(std::move(association));
    locked->recorder_.association->Watch(std::make_shared<WeakHandler>(locked));
    return locked;
  }
  void OnReady(Interest ready) override {
    std::lock_guard lock(mutex_);
    recorder_.OnReady(ready);
    changed_.notify_all();
  }
  void With(const std::function<void(Recorder&)>& what) {
    std::lock_guard lock(mutex_);
    what(recorder_);
  }
  bool Until(const std::function<bool(Recorder&)>& done, std::chrono::milliseconds most = std::chrono::seconds(20)) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, most, [&] { return done(recorder_); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Recorder recorder_;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_TESTING_LOCKED_RECORDER_H_
