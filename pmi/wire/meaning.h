#ifndef PMI_WIRE_MEANING_H_
#define PMI_WIRE_MEANING_H_

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace weft::pmi {

// Key in the key-value space of a spawned job. The job that spawned it puts there the port at which MPI_Comm_spawn
// waits for it. MPICH's name.
inline constexpr char kParentPort[] = "PARENT_ROOT_PORT_NAME";

// In the same space, only from Weft's mpiexec: the id of the job that spawned it, for Disconnect. If it is present,
// Disconnect may be used in PMI-1 too.
inline constexpr char kSpawnerKey[] = "weft_spawner";

// In the same space, from a Weft mpiexec whose jobs go on without dead ranks: it supports WatchDeaths, in PMI-1 too.
inline constexpr char kDeathsKey[] = "weft_deaths";

using KeyValues = std::vector<std::pair<std::string, std::string>>;

// One program of a spawn.
struct SpawnCommand {
  std::string program;
  std::vector<std::string> arguments;  // without the program
  int processes = 1;
  KeyValues info;
  bool operator==(const SpawnCommand&) const = default;
};

// The requests of a rank to its launcher, in any version of PMI. Comments name the version if only one has the request.
// A name that the asker left out is empty.
namespace ask {

struct Init {
  int version = 1;
  int subversion = 1;
  bool out_of_band = false;  // init_oob: this connection only receives announcements
  std::string signal;        // the signal that accompanies each of them; empty: none
  bool operator==(const Init&) const = default;
};
// PMI-1: from a client that connected to PMI_PORT. PMI-2: always, after Init.
struct Introduce {
  std::optional<int> rank;
  std::string job_id;
  bool threaded = false;
  std::string authentication;  // a method; empty: none requested
  bool operator==(const Introduce&) const = default;
};
struct Prove {  // PMI-2: the answer to a challenge
  std::string proof;
  bool operator==(const Prove&) const = default;
};
struct Finalize {
  bool operator==(const Finalize&) const = default;
};
struct Abort {  // has no answer
  int exit_code = 1;
  std::string message;
  bool operator==(const Abort&) const = default;
};
struct Put {
  std::string space;  // PMI-2: always the job's own
  std::string key;
  std::optional<std::string> value;  // absent: the asker left it out, which is refused
  bool operator==(const Put&) const = default;
};
struct Get {
  std::string space;
  std::string key;
  int source = -1;  // PMI-2: the rank that may have put it; -1: unknown
  bool operator==(const Get&) const = default;
};
struct Fence {
  bool operator==(const Fence&) const = default;
};
struct Spawn {
  std::vector<SpawnCommand> commands;
  KeyValues preput;  // in the new job's space from the start
  bool operator==(const Spawn&) const = default;
};
struct JobId {
  bool operator==(const JobId&) const = default;
};
struct Disconnect {  // PMI-2, and PMI-1 if kSpawnerKey is present
  std::string job_id;
  bool operator==(const Disconnect&) const = default;
};
struct Connect {  // PMI-2, as are the next two
  std::string job_id;
  bool operator==(const Connect&) const = default;
};
struct GetAll {
  std::string job_id;
  bool operator==(const GetAll&) const = default;
};
struct PutAll {
  std::string job_id;
  KeyValues values;
  bool operator==(const PutAll&) const = default;
};
struct GetNodeAttribute {  // PMI-2
  std::string key;
  bool wait = false;
  bool operator==(const GetNodeAttribute&) const = default;
};
struct PutNodeAttribute {  // PMI-2
  std::string key, value;
  bool operator==(const PutNodeAttribute&) const = default;
};
struct GetJobAttribute {  // PMI-1: get of the same key from the job's own space
  std::string key;
  bool operator==(const GetJobAttribute&) const = default;
};
struct Publish {
  std::string service, port;
  bool operator==(const Publish&) const = default;
};
struct Lookup {
  std::string service;
  bool operator==(const Lookup&) const = default;
};
struct Unpublish {
  std::string service;
  bool operator==(const Unpublish&) const = default;
};
struct UniverseSize {  // PMI-2: the job attribute universeSize
  bool operator==(const UniverseSize&) const = default;
};
struct Application {  // MPI_APPNUM; in PMI-2 it is in the answer to Introduce
  bool operator==(const Application&) const = default;
};
struct Maxes {  // PMI-1, as are the next three
  bool operator==(const Maxes&) const = default;
};
struct CreateSpace {
  bool operator==(const CreateSpace&) const = default;
};
struct DestroySpace {
  std::string space;
  bool operator==(const DestroySpace&) const = default;
};
struct GetByIndex {
  std::string space;
  int index = 0;
  bool operator==(const GetByIndex&) const = default;
};

// if kDeathsKey is present: from now on deaths of ranks in all jobs of the launcher are announced, past ones first
struct WatchDeaths {
  bool operator==(const WatchDeaths&) const = default;
};

struct Unknown {  // PMI-2, which has an answer for it; in PMI-1 it is an error
  std::string command;
  bool operator==(const Unknown&) const = default;
};

}  // namespace ask

using Request = std::variant<ask::Init, ask::Introduce, ask::Prove, ask::Finalize, ask::Abort, ask::Put, ask::Get, ask::Fence,
                             ask::Spawn, ask::JobId, ask::Connect, ask::Disconnect, ask::GetAll, ask::PutAll,
                             ask::GetNodeAttribute, ask::PutNodeAttribute, ask::GetJobAttribute, ask::Publish, ask::Lookup,
                             ask::Unpublish, ask::UniverseSize, ask::Application, ask::Maxes, ask::CreateSpace,
                             ask::DestroySpace, ask::GetByIndex, ask::WatchDeaths, ask::Unknown>;

struct Question {
  Request request;
  std::string thread;  // PMI-2's thrid, which the answer repeats; empty: the asker has only one thread
};

// The identity of a process, in the answer to Introduce.
struct Identity {
  int rank = 0;
  int size = 1;
  int application = -1;
  std::string spawner;  // the job that spawned this one; empty: mpiexec started it
  bool operator==(const Identity&) const = default;
};

// Lengths in bytes, including the terminating zero of C, in the answer to Maxes.
struct Limits {
  int name = 0;
  int key = 0;
  int value = 0;
  bool operator==(const Limits&) const = default;
};

// The answer to a request, which determines the fields that are used. code: 0, or an error; then `why` may tell the
// reason.
struct Answer {
  int code = 0;
  std::string why;
  // Get, attributes, Lookup: absent if there is none. JobId, CreateSpace, Spawn: a job's name
  std::optional<std::string> value;
  std::optional<std::string> challenge;  // Introduce: Prove must answer it before there is an identity
  int number = -1;  // UniverseSize, Application: -1: unknown. GetByIndex: the next index. Init: the version
  int subversion = 0;                  // Init
  bool copy = false;                   // Connect: the client must copy the values itself
  Identity identity;                   // Introduce
  Limits limits;                       // Maxes
  KeyValues values;                    // GetAll; GetByIndex: one pair
  std::vector<int> errors;             // Spawn: by process; empty: all succeeded if code is 0
  std::vector<int> ranks;              // of the announcement "died"
  std::string world;                   // of the announcement "died"
  bool operator==(const Answer&) const = default;
};

// A message that a launcher sends unasked, on an out-of-band connection; "died" goes to the connections that watch for
// deaths.
struct Announcement {
  static constexpr char kDied[] = "died";
  static constexpr size_t kMostRanks = 128;  // in one announcement, to keep the line short

  std::string command;     // "abort": the job ends; "checkpoint"; "died"
  std::string why = {};    // a sentence, or empty
  std::vector<int> ranks = {};  // died
  // "died": the job of the ranks, JobSecret::Id() in hexadecimal digits; empty: the receiver's own job
  std::string world = {};
  bool operator==(const Announcement&) const = default;
};

}  // namespace weft::pmi

#endif  // PMI_WIRE_MEANING_H_
