// One association with a peer that sends anything, and users who do anything that they may: what a sink gets is what
// the DDP-SSNs say, what goes out is legal (RFC 5043 section 6), and what is held stays within its bound.
//
// Input: an option byte, then operations of one byte, some with arguments.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "ddp/sctp/association.h"
#include "ddp/sctp/testing/end.h"
#include "ddp/sctp/testing/legal_output.h"

namespace weft::ddp::sctp {
namespace {

using testing::Bytes;
using testing::End;
using testing::LegalOutput;
using testing::Message;
using testing::RecordingSink;

constexpr uint32_t kStreams = 5;

struct User {
  Session* session = nullptr;
  RecordingSink sink;
  bool attached = false;
};

class Run {
 public:
  explicit Run(ByteSpan input)
      : input_(input),
        end_({.initiator = (Byte() & 1) != 0,
              .streams = kStreams,
              .most_requests = 2,
              .most_held_bytes = 1,
              .most_unacknowledged = input_.empty() || input_[0] % 2 == 0 ? kMostInFlight : 4}) {}

  void Play() {
    while (at_ < input_.size()) {
      Step(Byte());
      Check();
    }
    for (User& user : users_) {
      if (user.session != nullptr) end_.association.Release(*std::exchange(user.session, nullptr));
    }
    Check();
    end_.AcknowledgeAll();
    while (Take(end_.Take())) end_.AcknowledgeAll();
  }

 private:
  uint8_t Byte() { return at_ < input_.size() ? input_[at_++] : 0; }

  // A segment says in its first two bytes which it is.
  static Bytes Body(uint16_t ssn, size_t length) {
    Bytes body(length);
    body[0] = static_cast<uint8_t>(ssn >> 8);
    body[1] = static_cast<uint8_t>(ssn);
    return body;
  }

  void Step(uint8_t operation) {
    const auto stream = static_cast<uint16_t>(operation >> 4 & 7);  // of which some do not exist
    switch (operation & 15) {
      case 0:
      case 1:
      case 2:
      case 3: {  // a segment: what is next there, or near it, or anywhere
        const uint8_t how = Byte();
        auto ssn = static_cast<uint16_t>(next_[stream]);
        if (how & 0x80) ssn = static_cast<uint16_t>(ssn + (how & 0x40 ? Byte() << 7 : how & 7));
        if (!(how & 0x80)) ++next_[stream];
        const size_t length = how & 0x20 ? 2 + Byte() * 257u : 2 + (how & 0x18) * 9u;
        return end_.Get(testing::Segment(stream, ssn, Body(ssn, length)));
      }
      case 4:
      case 5: {  // a control message
        const uint8_t how = Byte();
        const auto kind = static_cast<Chunk::Kind>(1 + (how & 3));
        const bool enhanced = (how & 4) != 0 && kind != Chunk::Kind::kTerminate;
        if (how & 8) next_[stream] = 0;
        const auto ssn = static_cast<uint16_t>(how & 16 ? next_[stream] + 2 : next_[stream]++);
        return end_.Get(testing::Make(stream, kind, ssn, Bytes(kind == Chunk::Kind::kTerminate ? 0 : 4), enhanced));
      }
      case 6: {  // anything
        const uint8_t ppid = Byte();
        const size_t wanted = Byte() & 15;
        const size_t length = std::min(wanted, input_.size() - at_);
        const ByteSpan bytes = input_.subspan(at_, length);
        at_ += length;
        Bytes message(bytes.begin(), bytes.end());
        if (ppid % 5 == 2 && message.size() > 3)
          std::copy_n(message.begin(), 2, message.begin() + 2);  // a segment that says which
        return end_.Get({.stream = stream, .ppid = 14u + ppid % 5, .bytes = std::move(message)});
      }
      case 7:
        if (Session* const session = end_.association.Open(Bytes(4), (operation & 0x10) != 0)) Add(session);
        return;
      case 8:
        if (Session* const session = end_.association.TakeNews()) Add(session);
        return;
      case 9:
        for (int i = 0; i <= stream; ++i) Take(end_.Take());
        return;
      case 10:
        return end_.association.OnAcknowledged(end_.association.taken() -
                                               std::min<uint64_t>(end_.association.taken(), stream));
      case 15:
        if (operation == 0xff) end_.association.OnLost();
        [[fallthrough]];
      default:
        if (User* const user = Find(Byte())) Work(*user, operation);
    }
  }

  void Add(Session* session) {
    for (const User& user : users_) {
      if (user.session == session) return;
    }
    users_.emplace_back().session = session;
  }
  User* Find(uint8_t index) {
    for (User& user : users_) {
      if (user.session != nullptr && index-- % 8 == 0) return &user;
    }
    return nullptr;
  }

  void Work(User& user, uint8_t operation) {
    Session& session = *user.session;
    switch (operation >> 4 & 15) {
      case 0:
      case 1:
      case 2:
        if (session.Accept(Bytes(4))) session.AssumePeerWaits();
        [[fallthrough]];
      case 3:
      case 4:
        if (!user.attached && session.state() == SessionState::kAccepted) {
          user.attached = true;
          session.Attach(user.sink);
        }
        if (user.attached) session.SetOpen((operation & 3) != 0);
        return;
      case 5:
        return void(session.Reject({}));
      case 6:
        return void(session.Deliver(operation & 3));
      case 7:
        user.sink.refuse_at = user.sink.ulpdus.size();
        return;
      case 8:
      case 9:
      case 10:
        memory_.emplace_back(20 + (operation & 3) * 160, operation);
        if (session.HasRoom(memory_.back().size() - 14, 1) && memory_.back().size() <= session.max_ulpdu()) {
          testing::Send(session, memory_.back());
        }
        return;
      case 11:
        return session.End();
      case 12:
        return session.Abort();
      case 13:
        user.session = nullptr;
        return end_.association.Release(session);
      default:
        return;
    }
  }

  bool Take(const std::optional<Message>& message) {
    if (!message) return false;
    WEFT_CHECK(message->stream < kStreams);
    const std::string wrong = legal_.Check(message->stream, message->ppid, message->bytes);
    if (!wrong.empty()) std::fprintf(stderr, "stream %u: %s\n", message->stream, wrong.c_str());
    WEFT_CHECK(wrong.empty());
    return true;
  }

  void Check() {
    const Association& association = end_.association;
    WEFT_CHECK(association.held_bytes() <= BufferPool::kBlockSize);
    WEFT_CHECK(association.requests() <= 2 && association.resting_streams() <= kStreams);
    size_t users = 0;
    for (const User& user : users_) {
      // Of each session the segments from 1 on, each once.
      for (; checked_[&user] < user.sink.ulpdus.size(); ++checked_[&user]) {
        const Bytes& ulpdu = user.sink.ulpdus[checked_[&user]];
        if (ulpdu.size() >= 2)
          WEFT_CHECK((ulpdu[0] << 8 | ulpdu[1]) == static_cast<int>((checked_[&user] + 1) & 0xffff));
      }
      if (user.session == nullptr) continue;
      ++users;
      WEFT_CHECK(!user.session->ToString().empty());
      WEFT_CHECK((user.session->state() == SessionState::kFailed) == (user.session->error() != SessionError::kNone) ||
                 user.session->state() == SessionState::kLost);
      WEFT_CHECK(user.session->consumed() <= user.session->appended());
    }
    WEFT_CHECK(association.sessions() <= users + kStreams + 2);
  }

  ByteSpan input_;
  size_t at_ = 0;
  End end_;
  LegalOutput legal_;
  std::list<User> users_;
  std::map<const User*, size_t> checked_;
  std::list<Bytes> memory_;
  uint32_t next_[8] = {};
};

}  // namespace
}  // namespace weft::ddp::sctp

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::ddp::sctp::Run({data, size}).Play();
  return 0;
}
