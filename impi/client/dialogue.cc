#include "impi/client/dialogue.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "base/byte_reader.h"
#include "base/check.h"

namespace weft::impi {
namespace {

constexpr size_t kLongestBeforeTheJob = 256;  // bytes; the longest command that is known then has 4

std::string MaskText(uint32_t mask) {
  std::array<char, 16> text;
  std::snprintf(text.data(), text.size(), "0x%x", mask);
  return text.data();
}

}  // namespace

Dialogue::Dialogue(Setup setup, Time now) : setup_(std::move(setup)), reader_(kLongestBeforeTheJob) {
  WEFT_CHECK(setup_.rank >= 0 && setup_.rank < kMostClients);
  WEFT_CHECK(std::is_sorted(setup_.says.begin(), setup_.says.end(), [](const auto& a, const auto& b) { return a.label <= b.label; }));
  uint32_t methods = 0;
  if (setup_.none) methods |= 1u << static_cast<int>(AuthMethod::kNone);
  if (setup_.key) methods |= 1u << static_cast<int>(AuthMethod::kKey);
  if (methods == 0) {
    state_ = State::kFailed;
    reason_ =
        "no authentication method is available: set IMPI_AUTH_KEY to the number that the server has, or IMPI_AUTH_NONE if the server accepts everybody";
    return;
  }
  Send(Command::OfNumber(CommandCode::kAuth, methods));
  deadline_ = now + kAnswerPatience;
}

// --- events ---

void Dialogue::OnBytes(ByteSpan bytes, Time now) {
  if (state_ == State::kFailed || state_ == State::kEnded) return;
  reader_.Append(bytes);
  Read(now);
}

void Dialogue::OnClosed() {
  switch (state_) {
    case State::kAuthenticating:
      return Fail("closed the connection instead of choosing an authentication method; set IMPI_AUTH_KEY to the same number, or IMPI_AUTH_NONE, at both");
    case State::kJoining:
      return Fail("closed the connection before all clients had joined" +
                  std::string(sent_key_ ? "; is IMPI_AUTH_KEY the same number as at the server," : "; is this client's key wanted,") + " and is " +
                  std::to_string(setup_.rank) + " a client of this job that nobody else is?");
    case State::kExchanging:
      return Fail("closed the connection while the clients told each other about themselves; it says which client was wrong or left");
    case State::kRunning:
      return Fail("closed the connection while the job ran; it says which client left");
    case State::kEnded:
    case State::kFailed:
      return;
  }
}

void Dialogue::OnTime(Time now) {
  if (!deadline_ || *deadline_ > now) return;
  switch (state_) {
    case State::kAuthenticating:
      return Fail("did not choose an authentication method within " + std::to_string(kAnswerPatience.count()) + " seconds; is it an IMPI server?");
    case State::kJoining:
      return Fail("has not seen all clients within " + std::to_string(setup_.join_patience.count()) + " seconds; start the others, or wait longer for them");
    case State::kExchanging: {
      const std::string what = done_ ? "DONE" : impi::NameOf(setup_.says[said_ - 1].label);
      return Fail("did not answer " + what + " within " + std::to_string(kExchangePatience.count()) +
                  " seconds after all clients had joined; a client that hangs delays the others");
    }
    case State::kRunning:
    case State::kEnded:
    case State::kFailed:
      return;
  }
}

Bytes Dialogue::TakeOutput() { return std::exchange(output_, {}); }

void Dialogue::Finish() {
  WEFT_CHECK(state_ == State::kRunning);
  Send(Command{CommandCode::kFini, {}});
  state_ = State::kEnded;
}

// --- what the server says ---

void Dialogue::Read(Time now) {
  if (state_ == State::kAuthenticating) {
    const std::optional<Bytes> words = reader_.NextWords(AuthChoice::kSize);
    if (!words || !Authenticate(AuthChoice::Parse(*words), now)) return;
  }
  while (const std::optional<Command> command = reader_.NextCommand()) {
    if (!Obey(*command, now)) return;
  }
  const std::optional<int32_t> refused = reader_.refused_length();
  if (!refused) return;
  const size_t most = state_ == State::kJoining ? kLongestBeforeTheJob : kLongestPayload;
  Fail("sent a command with a payload of " + std::to_string(*refused) + " bytes; at most " + std::to_string(most) + " are accepted");
}

bool Dialogue::Authenticate(const AuthChoice& choice, Time now) {
  const bool none = setup_.none && choice.which == static_cast<int>(AuthMethod::kNone);
  const bool key = setup_.key && choice.which == static_cast<int>(AuthMethod::kKey);
  if (!none && !key) {
    Fail("chose the authentication method " + std::to_string(choice.which) + ", which this client did not offer; is it an IMPI server?");
    return false;
  }
  if (choice.length != 0) {
    Fail("wants to send " + std::to_string(choice.length) + " bytes of authentication method " + std::to_string(choice.which) + ", which has none");
    return false;
  }
  if (key) Send(SerializeKey(*setup_.key));
  sent_key_ = key;
  Send(Command::OfNumber(CommandCode::kImpi, static_cast<uint32_t>(setup_.rank)));
  state_ = State::kJoining;
  deadline_ = now + setup_.join_patience;
  return true;
}

// False: it is over.
bool Dialogue::Obey(const Command& command, Time now) {
  switch (command.code) {
    case CommandCode::kImpi:
      Join(command, now);
      break;
    case CommandCode::kColl:
      Hear(command);
      break;
    case CommandCode::kDone:
      if (state_ != State::kExchanging || !done_) {
        Fail("sent DONE " + std::string(state_ == State::kRunning ? "a second time" : "before this client had sent it"));
        break;
      }
      if (!command.payload.empty()) {
        Fail("sent DONE with " + std::to_string(command.payload.size()) + " bytes and not 0");
        break;
      }
      state_ = State::kRunning;
      deadline_.reset();
      break;
    case CommandCode::kAuth:
    case CommandCode::kFini:
      Fail("sent " + impi::NameOf(command.code) + ", which only clients send");
      break;
  }
  return state_ != State::kFailed;  // other commands are of a later version
}

void Dialogue::Join(const Command& command, Time now) {
  if (state_ != State::kJoining) return Fail("sent IMPI a second time");
  if (command.payload.size() != sizeof(uint32_t)) return Fail("sent IMPI with " + std::to_string(command.payload.size()) + " bytes and not 4");
  const auto clients = static_cast<int32_t>(ByteReader(command.payload).U32());
  if (clients < 1 || clients > kMostClients) return Fail("says that the job has " + std::to_string(clients) + " clients; 1 to 32 are possible");
  if (setup_.rank >= clients) {
    return Fail("says that the job has " + std::to_string(clients) + " clients, but let this one in as client " + std::to_string(setup_.rank));
  }
  clients_ = clients;
  reader_.set_longest_payload(kLongestPayload);
  state_ = State::kExchanging;
  deadline_ = now + kExchangePatience;
  SayNext();
}

void Dialogue::Hear(const Command& command) {
  if (state_ != State::kExchanging) return Fail("sent COLL " + std::string(state_ == State::kRunning ? "after DONE" : "before IMPI"));
  std::optional<Collected> told = Collected::FromServer(command);
  if (!told) return Fail("sent COLL with " + std::to_string(command.payload.size()) + " bytes; a label and a mask have 8");
  const std::string name = impi::NameOf(told->label);
  if (told->label <= heard_) return Fail("sent " + name + " after " + impi::NameOf(heard_) + "; labels ascend");
  const uint64_t all = (uint64_t{1} << clients_) - 1;
  if (told->clients == 0 || (told->clients & ~all) != 0) {
    return Fail("sent " + name + " with the mask " + MaskText(told->clients) + " in a job of " + std::to_string(clients_) + " clients");
  }
  heard_ = told->label;
  const bool mine = (told->clients >> setup_.rank & 1) != 0;
  const bool awaited = !done_ && setup_.says[said_ - 1].label == told->label;
  if (mine && !awaited) return Fail("says that this client sent " + name + ", which it has not sent");
  if (!mine && awaited) return Fail("says that this client did not send " + name + ", which it has sent");
  if (!awaited) {
    // Section 2.3.5: a label that other clients have in addition. It cannot be above the one that this client waits for.
    if (!done_ && told->label > setup_.says[said_ - 1].label) {
      return Fail("sent " + name + " before " + impi::NameOf(setup_.says[said_ - 1].label) + ", which this client waits for");
    }
    return;
  }
  told_bytes_ += told->values.size();
  if (told_bytes_ > kMostTold) return Fail("told more than " + std::to_string(kMostTold) + " bytes about the clients; " + name + " was the last label");
  told_.emplace(told->label, std::move(*told));
  SayNext();
}

void Dialogue::SayNext() {
  if (said_ < setup_.says.size()) return Send(setup_.says[said_++].ToServer());
  done_ = true;
  Send(Command{CommandCode::kDone, {}});
}

void Dialogue::Send(const Command& command) { Send(command.Serialize()); }

void Dialogue::Send(const Bytes& bytes) { output_.insert(output_.end(), bytes.begin(), bytes.end()); }

void Dialogue::Fail(const std::string& what) {
  if (state_ == State::kFailed) return;
  state_ = State::kFailed;
  reason_ = "client " + std::to_string(setup_.rank) + ": the server (" + setup_.server + ") " + what;
  deadline_.reset();
  output_.clear();
  told_.clear();
}

}  // namespace weft::impi
