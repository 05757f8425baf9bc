#ifndef PMI_SERVER_H_
#define PMI_SERVER_H_

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pmi/message.h"

namespace weft::pmi {

using KeyValues = std::vector<std::pair<std::string, std::string>>;

// The server's side of PMI version 1 for the ranks of one host: it answers from its own copy of the job's key-value space, in
// which what other hosts' ranks put appears at the barrier (hydra's semantics). No I/O: its owner carries the bytes.
class Server {
 public:
  struct Setup {
    std::string kvs_name;
    int job_size = 0;
    int universe_size = -1;             // -1: unknown
    std::map<int, int> application_of;  // MPI_APPNUM by rank: the ranks of this host
    KeyValues values;                   // in the key-value space from the start
  };

  // What the owner does for it. No call may re-enter the server.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void Send(int rank, const std::string& bytes) = 0;
    virtual void OnAbort(int rank, int exit_code, const std::string& message) = 0;
    // The rank broke the protocol; nothing that it sends is read any more.
    virtual void OnMisuse(int rank, const std::string& what) = 0;
    // All ranks of this host are in the barrier; `put` is what they put since the last one. EndFence() lets them go on.
    virtual void OnFence(KeyValues put) = 0;
    // For the job's name service; its answer goes to the rank.
    virtual void OnNameQuestion(int rank, const Message& question) = 0;
  };

  enum class State {
    kSilent,  // has not said init
    kInitialised,
    kFinalised,  // may say init again: a shell script can run one MPI program after the other
  };

  Server(Setup setup, Owner* owner);

  // Bytes that came from `rank`, which is of this host, cut anywhere.
  void Receive(int rank, std::string_view bytes);
  // All ranks of the job are in the barrier; `put` by ranks of other hosts (those of this one may be among them).
  void EndFence(const KeyValues& put);

  State state(int rank) const { return ranks_.at(rank).state; }
  size_t waiting() const { return in_barrier_; }  // ranks that are in the barrier

 private:
  struct Rank {
    int application = 0;
    State state = State::kSilent;
    bool in_barrier = false;
    MessageReader reader;
  };

  void Handle(int rank, const Message& message);
  void Introduce(int rank, const Message& message);
  void EnterBarrier(int rank);
  Message Answer(int rank, const Message& question);
  Message Init(Rank& rank, const Message& question);
  Message Put(const Message& question);
  Message Get(const Message& question);
  // Why not, or null: the question's key-value space exists and its key is good.
  const char* WrongKey(const Message& question) const;

  const Setup setup_;
  Owner* const owner_;
  std::map<int, Rank> ranks_;
  std::map<std::string, std::string> values_;
  KeyValues put_since_fence_;
  size_t in_barrier_ = 0;
};

}  // namespace weft::pmi

#endif  // PMI_SERVER_H_
