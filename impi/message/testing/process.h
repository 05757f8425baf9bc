#ifndef IMPI_MESSAGE_TESTING_PROCESS_H_
#define IMPI_MESSAGE_TESTING_PROCESS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "impi/message/endpoint.h"
#include "impi/message/matching.h"

namespace weft::impi {

using Bytes = std::vector<uint8_t>;

// A process for tests: an Endpoint with matching, and with the bytes of its messages. Frames (a header and what follows it) are carried by the test.
class TestProcess {
 public:
  struct Sending {
    Bytes bytes;
    bool synchronous = false;
    bool taken = false;         // its last bytes are in a frame
    bool synchronized = false;  // SYNCACK came
    bool cancelled = false, refused = false;
    bool complete() const { return cancelled || (taken && (synchronized || !synchronous)); }
  };
  struct Receiving {
    size_t room = 0;  // bytes
    Bytes bytes;      // as many as there was room for
    Envelope envelope;
    PeerId source;
    bool matched = false, complete = false, truncated = false;
  };

  TestProcess(const ProcessName& self, const PacketLimits& limits) : endpoint(self, limits) {}

  SendId Send(PeerId peer, const Envelope& envelope, Bytes bytes, bool synchronous = false);  // envelope.length is that of `bytes`
  CancelOutcome Cancel(SendId id);
  ReceiveId Post(const Wanted& wanted, size_t room);
  // A matched probe, and the receive for it.
  std::optional<MessageId> MatchedProbe(const Wanted& wanted);
  ReceiveId Receive(MessageId message, size_t room);
  // The next frame to `peer`; empty: there is none.
  Bytes Take(PeerId peer);
  // Why the frame is refused; empty: it is not.
  std::string On(const Bytes& frame);
  void Finish();
  size_t HeldBytes(PeerId peer) const;

  Endpoint endpoint;
  Matching matching;
  std::map<SendId, Sending> sends;
  std::map<ReceiveId, Receiving> receives;
  std::vector<ReceiveId> matches;  // in the order in which they were made

 private:
  struct Held {
    PeerId source;
    Bytes bytes;
  };
  void Give(MessageId message, ReceiveId receive);
  void Store(Receiving& receive, uint64_t offset, const uint8_t* bytes, size_t count);
  void Handle(const Event& event, const uint8_t* data);

  std::map<MessageId, Held> held_;         // first packets of messages that no receive has
  std::map<MessageId, ReceiveId> arriving_;  // messages that a receive has and that are not whole
  uint64_t receive_ = 0;
};

}  // namespace weft::impi

#endif  // IMPI_MESSAGE_TESTING_PROCESS_H_
