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

// Questions to the launcher and its answers, for any number of threads. Of those that wait one reads for all; each takes what is
// for it: by thrid where both sides have that, else by the name of the answer, of which then one is outstanding at a time. The first
// failure of the connection is final, and every call fails with it.
class Conversation {
 public:
  // Owns `fd`. Begins in PMI-1, as every launcher does.
  explicit Conversation(int fd, std::unique_ptr<TlsStream> tls = nullptr) : socket_(fd, std::move(tls)), dialect_(Dialect::Text(Dialect::Side::kRank)) {}

  int fd() const { return socket_.fd(); }
  // First of all where there is TLS: empty, or what is wrong.
  std::string Handshake() { return socket_.Handshake(); }
  int version() const { return dialect_->version(); }
  // From here on PMI-2. Before there are threads. `thread_ids`: whether the launcher gives thrid back.
  void SpeakCounted(bool thread_ids);

  // From here on `out_of_band`, another connection to the same launcher, is asked for the reason when this one is closed.
  void ListenTo(std::unique_ptr<Conversation> out_of_band) { out_of_band_ = std::move(out_of_band); }

  // Whom the launcher tells of deaths, with the lock held: it may not call back. Before the launcher is asked to.
  void set_on_announcement(std::function<void(const Announcement&)> on_announcement);
  // Takes what is there, without waiting for more. False: this is the end of the conversation.
  bool Hear();

  Result<Answered, PmiError> Ask(const Request& request);
  // What has no answer.
  std::string Tell(const Request& request);

 private:
  struct Waiter {
    std::string command;  // of the answer
    std::string thread;
    std::optional<Answered> answered;
  };

  std::string Send(const std::string& bytes, const std::string& what);
  // The next announcement, of an out-of-band connection: why the job ends, and empty when nothing is said in time.
  std::string HearWhy();
  // What the launcher says elsewhere of this connection's end: "; it says: ...", or empty.
  std::string WhyClosed();
  void Step(std::unique_lock<std::mutex>& lock, const std::string& wanted);
  void Receive(std::unique_lock<std::mutex>& lock, const std::string& wanted);
  void Deliver(Answered answered);
  // All that has come in full.
  void DeliverAll();
  bool Awaited(const std::string& command) const;

  std::mutex mutex_;  // guards all that follows; held while sending, not while receiving
  std::condition_variable changed_;
  Socket socket_;
  std::unique_ptr<Dialect> dialect_;
  bool thread_ids_ = false;
  unsigned long next_thread_ = 1;
  std::list<Waiter*> waiting_;  // in the order of the questions; each is on the stack of its thread
  bool reading_ = false;        // some thread is, for all
  bool closed_ = false;
  std::string why_closed_;      // WhyClosed(), of that
  std::unique_ptr<Conversation> out_of_band_;
  std::function<void(const Announcement&)> on_announcement_;
  std::string problem_;
};

}  // namespace weft::pmi

#endif  // PMI_CLIENT_CONVERSATION_H_
