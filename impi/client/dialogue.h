#ifndef IMPI_CLIENT_DIALOGUE_H_
#define IMPI_CLIENT_DIALOGUE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "impi/wire/command.h"

namespace weft::impi {

// What one client and the server of an IMPI job say to each other (IMPI 0.0, sections 2.3.3 to 2.3.7), on the client's side:
//
//   client                                server
//   AUTH methods              ->
//                             <-          the method
//   the key, where it is that ->
//   IMPI rank                 ->
//                             <-          IMPI clients, when all are there
//   COLL label values         ->                                             for each label, in ascending order:
//                             <-          COLL label mask values of all      the client waits before it sends the next one
//   DONE                      ->
//                             <-          DONE, when all have sent it
//   FINI                      ->                                             when all processes of the client have ended
//
// The specification lets a client send all labels at once. This one waits for each answer, as LAM does: servers were only seen with such clients, and the
// wait costs one round trip for each of 14 labels. It knows nothing of what the labels mean; impi/job does. No I/O and no clock: the owner carries the bytes
// of the one connection and says what time it is. Nothing calls back.
class Dialogue {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr int kMostClients = 32;  // bits of a mask
  // So long the server may take to name the authentication method.
  static constexpr std::chrono::seconds kAnswerPatience{10};
  // When all clients are there, they have so long to say everything. Longer than the server's own limit (60 s), because the server knows which client is late.
  static constexpr std::chrono::seconds kExchangePatience{70};
  static constexpr size_t kLongestPayload = (16 << 20) + 8;  // bytes, of a command of the server: 16 for each of 1,048,576 processes
  static constexpr size_t kMostTold = 64 << 20;              // bytes, of all answers

  struct Setup {
    std::string server;           // "192.0.2.1:5678", for messages
    int32_t rank = 0;             // of this client, 0 to kMostClients - 1
    bool none = false;            // IMPI_AUTH_NONE: the user consents to no authentication
    std::optional<uint64_t> key;  // IMPI_AUTH_KEY
    std::vector<Collected> says;  // in ascending order of the labels
    // So long the other clients may take to join; people start them by hand.
    std::chrono::seconds join_patience{3600};
  };

  enum class State : uint8_t {
    kAuthenticating,
    kJoining,     // other clients are missing
    kExchanging,  // of labels
    kRunning,     // the job
    kEnded,       // FINI is sent, or to be sent
    kFailed,      // reason()
  };

  // Its first command can be sent at once. It has failed already if there is no authentication method.
  Dialogue(Setup setup, Time now);

  // What the server sent.
  void OnBytes(ByteSpan bytes, Time now);
  // The server closed the connection, or it broke.
  void OnClosed();
  // When OnTime has something to do.
  std::optional<Time> deadline() const { return deadline_; }
  void OnTime(Time now);

  // What is to be sent to the server; empty: nothing. The caller sends it all, in this order.
  Bytes TakeOutput();
  // All processes of the client have ended, and all channels of its hosts (section 2.4). In kRunning. The owner closes the connection when the output is sent.
  void Finish();

  State state() const { return state_; }
  // Why it failed: names the server or this client, and what to do where that is known.
  const std::string& reason() const { return reason_; }
  // How many clients the job has; from kExchanging on.
  int clients() const { return clients_; }
  // What all clients said, by label; complete in kRunning. Labels that this client did not send are not kept.
  const std::map<Label, Collected>& told() const { return told_; }
  std::map<Label, Collected> TakeTold() { return std::move(told_); }

 private:
  void Read(Time now);
  bool Authenticate(const AuthChoice& choice, Time now);
  bool Obey(const Command& command, Time now);
  void Join(const Command& command, Time now);
  void Hear(const Command& command);
  void SayNext();
  void Send(const Command& command);
  void Send(const Bytes& bytes);
  void Fail(const std::string& what);

  const Setup setup_;
  State state_ = State::kAuthenticating;
  std::string reason_;
  std::optional<Time> deadline_;
  CommandReader reader_;
  Bytes output_;
  bool sent_key_ = false;
  int clients_ = 0;
  size_t said_ = 0;              // of setup_.says; the last of them has no answer yet, unless done_
  bool done_ = false;            // DONE is sent
  Label heard_ = Label::kNone;   // the last label that the server answered
  std::map<Label, Collected> told_;
  size_t told_bytes_ = 0;
};

}  // namespace weft::impi

#endif  // IMPI_CLIENT_DIALOGUE_H_
