#ifndef PMI_SERVER_SERVER_H_
#define PMI_SERVER_SERVER_H_

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pmi/server/secret_check.h"
#include "pmi/wire/dialect.h"

namespace weft::pmi {

// The server's side of PMI, for the ranks of one job on one host. Each rank uses the version that its first line asks
// for. Answers come from this host's copy of the job's key-value space. Values from other hosts are added at the
// barrier (hydra's semantics). No I/O: the owner carries the bytes.
class Server {
 public:
  // Limits. Requests of a rank beyond them are refused.
  static constexpr size_t kMostValues = 1 << 20;  // keys of the job's space
  static constexpr size_t kMostSpaces = 256;      // made by create_kvs, or copied from other jobs
  static constexpr size_t kMostPending = 1024;    // requests of one rank that wait for answers

  using Space = std::map<std::string, std::string>;

  struct Setup {
    std::string kvs_name;  // also the id of the job
    int job_size = 0;
    int universe_size = -1;             // -1: unknown
    std::map<int, int> application_of;  // MPI_APPNUM by rank, for the ranks of this host
    KeyValues values;                   // in the key-value space from the start
    std::string spawner = {};           // the id of the job that spawned this one
    std::string secret = {};            // if set, PMI-2 ranks must prove that they know it
  };

  // The functions of the owner. They must not call the server.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void Send(int rank, const std::string& bytes) = 0;
    // Sends on the connection of Listen().
    virtual void SendOutOfBand(int rank, const std::string& bytes) {}
    // Whether the rank reads what it is sent. If not, its further requests wait until Receive(rank, {}).
    virtual bool HasRoom(int rank) const = 0;
    virtual void OnAbort(int rank, int exit_code, const std::string& message) = 0;
    // The rank broke the protocol. No more of its data is read.
    virtual void OnMisuse(int rank, const std::string& what) = 0;
    // All ranks of this host are in the barrier. `put`: the values that they put since the last barrier. EndFence()
    // lets them continue.
    virtual void OnFence(KeyValues put) = 0;
    // A request that mpiexec must answer: names, spawns and disconnects. Pass `ticket` to TakeAnswer() when the answer
    // is known.
    virtual void OnQuestion(int rank, const std::string& ticket, const Request& request) = 0;
    // The key-value space of another job that has ranks on this host, or null.
    virtual const Space* SpaceOf(const std::string& job_id) = 0;
    // Sends the signal of that name, for a rank that wants one with each out-of-band message.
    virtual void Signal(int rank, const std::string& name) = 0;
  };

  enum class State {
    kSilent,  // has not sent init
    kInitialised,
    kFinalised,  // may send init again: a shell script can run one MPI program after another
  };

  Server(Setup setup, Owner* owner);

  // Assigns a connection to a rank that has identified itself (reception.h), in `dialect`. `question`: its last
  // request, which is still to be answered: the init of PMI-1, or the message that admits it in PMI-2.
  void Admit(int rank, std::unique_ptr<Dialect> dialect, const Question& question);
  // Like Admit(), for a second connection of the rank that only receives. false: it has one already.
  bool Listen(int rank, std::unique_ptr<Dialect> dialect, const Question& question, const std::string& signal);
  void StopListening(int rank) { listeners_.erase(rank); }
  // Bytes that came from `rank`, a rank of this host; cut anywhere.
  void Receive(int rank, std::string_view bytes);
  // The answer to an OnQuestion(). It is dropped if no rank waits for it any more.
  void TakeAnswer(int rank, const std::string& ticket, const Answer& answer);
  // All ranks of the job are in the barrier. `put`: values from ranks of other hosts (those of this host may be among
  // them).
  void EndFence(const KeyValues& put);
  // These ranks have died, on any host. Tells the ranks that watch for deaths, now or later. `world`: the other job
  // that they belong to (Announcement); empty: this job. Only the last kMostWorlds other jobs are kept.
  void TellDeaths(const std::vector<int>& ranks, const std::string& world = {});
  static constexpr size_t kMostWorlds = 1024;
  // Sends it to the ranks that have opened an out-of-band channel.
  void Announce(const Announcement& announcement);

  State state(int rank) const { return ranks_.at(rank).state; }
  size_t waiting() const { return in_barrier_; }  // number of ranks in the barrier
  const std::string& name() const { return setup_.kvs_name; }  // of the job
  const Space& space() const { return values_; }

 private:
  struct Rank {
    int application = 0;
    State state = State::kSilent;
    bool introduced = false;                        // PMI-2: fullinit has been accepted
    std::optional<SecretCheck> check;               // PMI-2
    std::optional<std::string> out_of_band_signal;  // set if it only receives
    bool broken = false;
    bool watches_deaths = false;
    std::unique_ptr<Dialect> dialect = Dialect::Text(Dialect::Side::kLauncher);
    std::optional<Question> fence;             // set while it is in the barrier
    std::map<std::string, Question> pending;   // by ticket; mpiexec must answer
    std::vector<Question> attribute_questions;  // wait until a rank puts the attribute
    unsigned next_ticket = 1;
  };
  struct Listener {
    std::unique_ptr<Dialect> dialect;
    std::string signal;  // empty: none
  };

  void Handle(int rank, const Question& question);
  void Misuse(int rank, const std::string& what);
  bool Precedes(int rank, const Question& question);
  void Reply(int rank, const Question& question, const Answer& answer);
  void Forward(int rank, const Question& question);

  void Init(int rank, const Question& question, const ask::Init& init);
  void Welcome(int rank, const Question& question);
  void Introduce(int rank, const Question& question, const ask::Introduce& introduce);
  void Prove(int rank, const Question& question, const ask::Prove& prove);
  void Finalize(int rank, const Question& question);
  void WatchDeaths(int rank, const Question& question);
  void SendDeaths(int rank, const std::string& world, const std::vector<int>& dead);
  std::set<int>& DeadOf(const std::string& world);
  void EnterBarrier(int rank, const Question& question);
  void Await(int rank, const Question& question, const ask::GetNodeAttribute& get);
  Identity IdentityOf(int rank) const;

  // For requests that are answered at once.
  Answer Do(int rank, const Request& request);
  Answer Put(const ask::Put& put);
  Answer PutInto(Space& space, const std::string& key, const std::string& value);
  Answer Get(const ask::Get& get);
  Answer GetByIndex(const ask::GetByIndex& get);
  Answer Connect(const ask::Connect& connect);
  Answer PutAll(const ask::PutAll& put);
  Answer PutNodeAttribute(const ask::PutNodeAttribute& put);
  Answer GetJobAttribute(const std::string& key);
  Answer CreateSpace();
  // A space that may be read, or null.
  const Space* Find(const std::string& name);

  // The last place of GetByIndex(), so that a rank that reads a whole space does not start from the beginning at each
  // step.
  struct Position {
    std::string space;
    int index = -1;
    std::string key;
  };

  const Setup setup_;
  Owner* const owner_;
  std::map<int, Rank> ranks_;
  std::map<int, Listener> listeners_;  // by rank
  Space values_;
  Space put_since_fence_;
  std::map<std::string, Space> own_spaces_;    // create_kvs
  std::map<std::string, Space> other_spaces_;  // of jobs on other hosts, which ranks copied here (kvs-putall)
  std::set<std::string> connected_;            // job ids
  Space node_attributes_;
  std::set<int> dead_;  // ranks of the job
  std::deque<std::pair<std::string, std::set<int>>> dead_elsewhere_;  // by world, oldest first
  Position last_read_;
  unsigned spaces_made_ = 0;
  size_t in_barrier_ = 0;
};

}  // namespace weft::pmi

#endif  // PMI_SERVER_SERVER_H_
