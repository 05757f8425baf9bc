#ifndef DDP_SCTP_SESSION_LIST_H_
#define DDP_SCTP_SESSION_LIST_H_

#include "base/check.h"

namespace weft::ddp::sctp {

class Session;

// The links of a session in one SessionList.
struct SessionLink {
  Session* previous = nullptr;
  Session* next = nullptr;
  bool in_list = false;
};

// A queue of sessions that wait for the same thing, longest wait first. Each session is in it at most once. Allocates
// nothing.
template <auto kLinkOf>  // function of Session that returns its link
class SessionList {
 public:
  bool empty() const { return first_ == nullptr; }
  Session* front() const { return first_; }

  void Add(Session& session) {
    SessionLink& link = kLinkOf(session);
    if (link.in_list) return;
    link = {.previous = last_, .next = nullptr, .in_list = true};
    (last_ == nullptr ? first_ : kLinkOf(*last_).next) = &session;
    last_ = &session;
  }

  void Remove(Session& session) {
    SessionLink& link = kLinkOf(session);
    if (!link.in_list) return;
    (link.previous == nullptr ? first_ : kLinkOf(*link.previous).next) = link.next;
    (link.next == nullptr ? last_ : kLinkOf(*link.next).previous) = link.previous;
    link = {};
  }

  // nullptr: the list is empty.
  Session* Pop() {
    Session* const session = first_;
    if (session != nullptr) Remove(*session);
    return session;
  }

 private:
  Session* first_ = nullptr;
  Session* last_ = nullptr;
};

}  // namespace weft::ddp::sctp

#endif  // DDP_SCTP_SESSION_LIST_H_
