#ifndef PMI_CLIENT_CONVERSATION_H_
#define PMI_CLIENT_CONVERSATION_H_

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "pmi/client/socket.h"
#include "pmi/error.h"
#include "pmi/wire/dialect.h"

namespace weft::pmi {

// Requests to the launcher and its answers, for any number of threads. One of the waiting threads reads for all, and
// each takes its own answer. Answers are matched by thrid if both sides support it, otherwise by the command of the
// answer; then one request per command is outstanding at a time. The first failure of the connection is final: every
// later call fails with it.
class Conversation {
 public:
  // Owns `fd`. Begins with PMI-1, as all launchers do.
  explicit Conversation(int fd, std::unique_ptr<TlsStream> tls = nullptr) : socket_(fd, std::move(tls)), dialect_(Dialect::Text(Dialect::Side::kRank)) {}

  int fd() const { return socket_.fd(); }
  // Call it first if TLS is used. Empty, or a description of the error.
  std::string Handshake() { return socket_.Handshake(); }
  int version() const { return dialect_->version(); }
  // From now on uses PMI-2. Call it before there are several threads. `thread_ids`: whether the launcher returns thrid.
  void SpeakCounted(bool thread_ids);

  // From now on `out_of_band`, another connection to the same launcher, is asked for the reason when this one is
  // closed.
  void ListenTo(std::unique_ptr<Conversation> out_of_band) { out_of_band_ = std::move(out_of_band); }

  // Sets the function that is called for deaths that the launcher reports. It is called with the mutex held and must
  // not call back. Call this before the launcher is asked to report deaths.
  void set_on_announcement(std::function<void(const Announcement&)> on_announcement);
  // Handles available messages without waiting for more. False: the connection has ended.
  bool Hear();

  Result<Answered, PmiError> Ask(const Request& request);
  // Sends a request that has no answer.
  std::string Tell(const Request& request);

 private:
  struct Waiter {
    std::string command;  // of the answer
    std::string thread;
    std::optional<Answered> answered;
  };

  std::string Send(const std::string& bytes, const std::string& what);
  // The next announcement of an out-of-band connection, which tells why the job ends. Empty: none came in time.
  std::string HearWhy();
  // The reason for the end of this connection from the out-of-band connection: "; it says: ...", or empty.
  std::string WhyClosed();
  void Step(std::unique_lock<std::mutex>& lock, const std::string& wanted);
  void Receive(std::unique_lock<std::mutex>& lock, const std::string& wanted);
  void Deliver(Answered answered);
  // Delivers all answers that have been received completely.
  void DeliverAll();
  bool Awaited(const std::string& command) const;

  std::mutex mutex_;  // guards all members below; held while sending, not while receiving
  std::condition_variable changed_;
  Socket socket_;
  std::unique_ptr<Dialect> dialect_;
  bool thread_ids_ = false;
  unsigned long next_thread_ = 1;
  std::list<Waiter*> waiting_;  // in the order of the requests; each is on the stack of its thread
  bool reading_ = false;        // a thread is reading for all
  bool closed_ = false;
  std::string why_closed_;      // result of WhyClosed()
  std::unique_ptr<Conversation> out_of_band_;
  std::function<void(const Announcement&)> on_announcement_;
  std::string problem_;
};

}  // namespace weft::pmi

#endif  // PMI_CLIENT_CONVERSATION_H_
