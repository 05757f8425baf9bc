// Two associations against each other: random work, messages that arrive in any order, acknowledgements that come late.
// What each program gets is what a model says: all that the other sent, in order, up to where one of them gave up.
//
//   random_run_test --test_env=RANDOM_RUN_SEED=N runs one seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

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

// So many that no end has to take one of the other's, where Initiates could meet.
constexpr uint32_t kAmple = 400;

class RandomRun {
 public:
  explicit RandomRun(uint64_t seed)
      : random_(seed),
        streams_(Chance(4) ? Below(3) + 1 : kAmple),
        sides_{Side(true, streams_, Limit()), Side(false, streams_, Limit())} {}

  void Play() {
    const size_t steps = 300 + Below(1200);
    for (size_t step = 0; step < steps && !::testing::Test::HasFailure(); ++step) Step(sides_[Below(2)]);
    Finish();
  }

 private:
  // One side of one session.
  struct User {
    Session* session = nullptr;
    uint32_t id = 0;
    RecordingSink sink;
    bool attached = false, released = false;
  };
  // What one side has sent in a session, and whether the other listened to the end.
  struct Direction {
    std::vector<Bytes> sent;
    std::vector<uint64_t> ends;  // positions
    std::vector<Bytes>* got = nullptr;
    bool whole = true;  // the receiver did not give up
  };
  struct Flying {
    Message message;
    uint64_t ordinal;
  };
  struct Side {
    Side(bool initiator, uint32_t streams, uint32_t limit)
        : end(std::make_unique<End>(AssociationOptions{.initiator = initiator,
                                                       .streams = streams,
                                                       .max_segment = 3000,
                                                       .most_requests = 4,
                                                       .most_unacknowledged = limit})) {}
    std::unique_ptr<End> end;
    std::list<User> users;
    std::map<uint32_t, Direction> directions;  // by session: what this side sent
    std::vector<Flying> flying;                // to the other
    std::vector<bool> arrived;                 // there, by ordinal - 1
    LegalOutput legal;
  };

  uint64_t Below(uint64_t bound) { return random_() % bound; }
  bool Chance(uint64_t one_in) { return Below(one_in) == 0; }
  uint32_t Limit() { return Chance(3) ? static_cast<uint32_t>(3 + Below(10)) : kMostInFlight; }
  Side& Other(const Side& side) { return sides_[&side == &sides_[0] ? 1 : 0]; }

  static uint32_t IdOf(const Session& session) {
    const auto& data = session.private_data();
    const size_t at = session.enhanced() ? 4 : 0;
    return static_cast<uint32_t>(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
  }

  void Step(Side& side) {
    switch (Below(12)) {
      case 0:
        return Open(side);
      case 1:
        return News(side);
      case 2:
        return Work(side);
      case 3:
        return Acknowledge(side);
      case 4:
      case 5:
      case 6:
        return Take(side);
      case 7:
        return Append(side);
      default:
        return Arrive(side);
    }
  }

  void Open(Side& side) {
    if (std::ranges::count(side.users, false, &User::released) > 12) return;
    const bool enhanced = Chance(2);
    Bytes data(enhanced ? 4 : 0);
    const uint32_t id = ++last_id_;
    data.insert(data.end(), {static_cast<uint8_t>(id >> 16), static_cast<uint8_t>(id >> 8), static_cast<uint8_t>(id)});
    data.resize(data.size() + Below(300));
    Session* const session = side.end->association.Open(data, enhanced);
    if (session == nullptr) return;
    User& user = side.users.emplace_back();
    user.session = session;
    user.id = id;
  }

  User* Find(Side& side, const Session* session) {
    for (User& user : side.users) {
      if (user.session == session && !user.released) return &user;
    }
    return nullptr;
  }

  void News(Side& side) {
    Session* const session = side.end->association.TakeNews();
    if (session == nullptr) return;
    User* user = Find(side, session);
    if (user == nullptr) {
      user = &side.users.emplace_back();
      user->session = session;
      user->id = IdOf(*session);
    }
    ASSERT_NE(session->state(), SessionState::kLost);
    if (session->state() == SessionState::kFailed) {
      ASSERT_EQ(session->why(), "the peer sent an unexpected Initiate while initiated");
      ASSERT_LT(streams_, kAmple);
      return Release(side, *user);
    }
    if (session->state() == SessionState::kRequested && !Chance(4)) Answer(side, *user);
  }

  void Answer(Side& side, User& user) {
    Session& session = *user.session;
    if (session.state() != SessionState::kRequested) return;
    const Bytes data(4 + Below(500));
    if (Chance(8)) return void(session.Reject(data));
    ASSERT_TRUE(session.Accept(data));
    if (Chance(2)) Attach(side, user);
  }

  void Attach(Side& side, User& user) {
    if (user.attached ||
        (user.session->state() != SessionState::kAccepted && user.session->state() != SessionState::kEnded))
      return;
    user.attached = true;
    user.session->Attach(user.sink);
    user.session->SetOpen(Chance(2));
    Other(side).directions[user.id].got = &user.sink.ulpdus;
  }

  // Something that a program does with a session that it has.
  void Work(Side& side) {
    User* const user = Pick(side);
    if (user == nullptr) return;
    Attach(side, *user);
    switch (Below(8)) {
      case 0:
        return Answer(side, *user);
      case 1:
        if (user->attached) user->session->SetOpen(Chance(2));
        break;
      case 2:
      case 3:
        if (user->attached) user->session->Deliver(1 + Below(5));
        break;
      case 4:
        if (Chance(3)) user->session->End();
        break;
      case 5:
        if (Chance(6)) Abort(side, *user);
        break;
      case 6:
        if (Chance(5) || user->session->over()) Release(side, *user);
        break;
    }
  }

  User* Pick(Side& side) {
    std::vector<User*> mine;
    for (User& user : side.users) {
      if (!user.released) mine.push_back(&user);
    }
    return mine.empty() ? nullptr : mine[Below(mine.size())];
  }

  void Append(Side& side) {
    User* const user = Pick(side);
    if (user == nullptr) return;
    for (size_t count = 1 + Below(8); count != 0; --count) {
      const size_t length = 14 + (Chance(2) ? Below(100) : Below(2900));
      Bytes segment(length);
      for (uint8_t& byte : segment) byte = static_cast<uint8_t>(random_());
      if (!user->session->HasRoom(length - 14, 1)) return;
      Direction& direction = side.directions[user->id];
      direction.sent.push_back(segment);
      const Bytes& kept = memory_.emplace_back(std::move(segment));
      testing::Send(*user->session, kept, Chance(2));
      direction.ends.push_back(user->session->appended());
    }
  }

  // What is not out will never be.
  void Forget(Side& side, User& user) {
    Direction& direction = side.directions[user.id];
    while (!direction.ends.empty() && direction.ends.back() > user.session->consumed()) {
      direction.ends.pop_back();
      direction.sent.pop_back();
    }
  }

  void Abort(Side& side, User& user) {
    Forget(side, user);
    user.session->Abort();
  }

  void Release(Side& side, User& user) {
    Forget(side, user);
    Other(side).directions[user.id].whole &= user.session->state() == SessionState::kEnded;
    user.released = true;
    side.end->association.Release(*user.session);
  }

  void Take(Side& side) {
    for (size_t count = 1 + Below(6); count != 0; --count) {
      User* const user = Chance(2) ? Pick(side) : nullptr;
      auto message = user != nullptr ? side.end->TakeOf(*user->session) : side.end->Take();
      if (!message) return;
      ASSERT_EQ(side.legal.Check(message->stream, message->ppid, message->bytes), "");
      side.flying.push_back({.message = std::move(*message), .ordinal = side.end->association.taken()});
      side.arrived.push_back(false);
    }
  }

  void Arrive(Side& side) {
    for (size_t count = 1 + Below(6); count != 0; --count) {
      End& to = *Other(side).end;
      if (side.flying.empty() || !to.association.HasRoom()) return;
      std::swap(side.flying[Chance(2) ? 0 : Below(side.flying.size())], side.flying.back());
      const Flying flying = std::move(side.flying.back());
      side.flying.pop_back();
      to.Get(flying.message);
      side.arrived[flying.ordinal - 1] = true;
    }
  }

  void Acknowledge(Side& side) {
    uint64_t all = 0;
    while (all < side.arrived.size() && side.arrived[all]) ++all;
    side.end->association.OnAcknowledged(Below(2) != 0 ? all : Below(all + 1));
  }

  // Everything arrives, everybody ends: nothing is left, and what came is what was sent.
  void Finish() {
    for (int round = 0; round < 200 && !::testing::Test::HasFailure(); ++round) {
      for (Side& side : sides_) {
        while (Session* const session = side.end->association.TakeNews()) {
          if (Find(side, session) != nullptr) continue;
          User& user = side.users.emplace_back();
          user.session = session;
          user.id = IdOf(*session);
        }
        for (User& user : side.users) {
          if (user.released) continue;
          if (user.session->state() == SessionState::kRequested) {
            ASSERT_TRUE(user.session->Accept(Bytes(4)));
          }
          Attach(side, user);
          if (user.attached) user.session->SetOpen(true);
          if (user.attached) user.session->Deliver(1000);
          user.session->End();
          if (user.session->over()) Release(side, user);
        }
        while (!side.flying.empty() && Other(side).end->association.HasRoom()) Arrive(side);
        for (int i = 0; i < 50; ++i) Take(side);
        Acknowledge(side);
      }
    }
    for (Side& side : sides_) {
      ASSERT_EQ(side.end->association.sessions(), 0u);
      ASSERT_EQ(side.end->association.held_bytes(), 0u);
      for (const auto& [id, direction] : side.directions) {
        const std::vector<Bytes> none;
        const std::vector<Bytes>& got = direction.got != nullptr ? *direction.got : none;
        ASSERT_LE(got.size(), direction.sent.size());
        for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], direction.sent[i]);
        if (direction.whole && direction.got != nullptr) {
          ASSERT_EQ(got.size(), direction.sent.size());
        }
      }
    }
  }

  std::mt19937_64 random_;
  const uint32_t streams_;
  Side sides_[2];
  uint32_t last_id_ = 0;
  std::list<Bytes> memory_;  // of payload that is referenced
};

TEST(RandomRunTest, TwoEndsGetWhatTheOtherSent) {
  if (const char* seed = std::getenv("RANDOM_RUN_SEED")) return RandomRun(std::strtoull(seed, nullptr, 0)).Play();
  const char* const asked = std::getenv("RANDOM_RUN_COUNT");
  const uint64_t count = asked != nullptr ? std::strtoull(asked, nullptr, 0) / 2 : 3000;
  for (uint64_t seed = 1; seed <= count; ++seed) {
    SCOPED_TRACE("bazel test //ddp/sctp:random_run_test --test_env=RANDOM_RUN_SEED=" + std::to_string(seed));
    RandomRun(seed).Play();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace weft::ddp::sctp
