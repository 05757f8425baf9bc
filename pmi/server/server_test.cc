#include "pmi/server/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pmi/server/names.h"
#include "pmi/wire/challenge.h"

namespace weft::pmi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

class FakeOwner : public Server::Owner {
 public:
  void Send(int rank, const std::string& bytes) override { sent[rank] += bytes; }
  bool HasRoom(int) const override { return true; }
  void OnAbort(int rank, int exit_code, const std::string& message) override {
    events.push_back("abort " + std::to_string(rank) + " " + std::to_string(exit_code) + " " + message);
  }
  void OnMisuse(int rank, const std::string& what) override { events.push_back("misuse " + std::to_string(rank) + " " + what); }
  void OnFence(KeyValues put) override { fences.push_back(put); }
  void OnQuestion(int rank, const std::string& ticket, const Request& request) override {
    if (answers_names && NameService::IsFor(request)) {
      server->TakeAnswer(rank, ticket, names.Do(request, 0));
    } else {
      questions.emplace_back(ticket, request);
    }
  }
  const Server::Space* SpaceOf(const std::string& job_id) override { return job_id == "kvs_0" ? &other : nullptr; }
  void Signal(int rank, const std::string& name) override { events.push_back("signal " + std::to_string(rank) + " " + name); }

  void SendOutOfBand(int rank, const std::string& bytes) override { out_of_band[rank] += bytes; }

  std::string Take(int rank) { return std::exchange(sent[rank], {}); }

  std::map<int, std::string> sent, out_of_band;
  std::vector<std::string> events;
  std::vector<KeyValues> fences;
  std::vector<std::pair<std::string, Request>> questions;
  Server* server = nullptr;
  bool answers_names = true;
  NameService names;
  Server::Space other{{"theirs", "9"}};
};

// Ranks 2 and 3 of a job of five, on this host.
struct PmiServer : ::testing::Test {
  FakeOwner owner;
  Server server{{"kvs_1", 5, 9, {{2, 0}, {3, 1}}, {{"given", "x"}}}, &owner};

  PmiServer() { owner.server = &server; }

  std::string Ask(int rank, const std::string& line) {
    server.Receive(rank, line + "\n");
    return owner.Take(rank);
  }
};

TEST_F(PmiServer, AnswersAsHydraDoes) {
  EXPECT_EQ(Ask(3, "cmd=init pmi_version=1 pmi_subversion=1"), "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
  EXPECT_EQ(Ask(3, "cmd=get_maxes"), "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n");
  EXPECT_EQ(Ask(3, "cmd=get_appnum"), "cmd=appnum appnum=1\n");
  EXPECT_EQ(Ask(3, "cmd=get_universe_size"), "cmd=universe_size size=9\n");
  EXPECT_EQ(Ask(3, "cmd=get_my_kvsname"), "cmd=my_kvsname kvsname=kvs_1\n");
  EXPECT_EQ(Ask(3, "cmd=get kvsname=kvs_1 key=foo"), "cmd=get_result rc=-1 msg=key_foo_not_found value=unknown\n");
  EXPECT_EQ(Ask(3, "cmd=get kvsname=kvs_1 key=given"), "cmd=get_result rc=0 msg=success value=x\n");
  EXPECT_EQ(Ask(3, "cmd=put kvsname=kvs_1 key=foo value=a=b"), "cmd=put_result rc=0 msg=success\n");
  EXPECT_EQ(Ask(2, "cmd=get kvsname=kvs_1 key=foo"), "cmd=get_result rc=0 msg=success value=a=b\n");
  EXPECT_EQ(Ask(3, "cmd=publish_name service=a port=b"), "cmd=publish_result info=ok rc=0 msg=success\n");
  EXPECT_EQ(Ask(2, "cmd=lookup_name service=a"), "cmd=lookup_result port=b info=ok rc=0 msg=success\n");
  EXPECT_EQ(Ask(2, "cmd=lookup_name service=z"), "cmd=lookup_result info=fail rc=1 msg=service_not_found\n");
  EXPECT_EQ(Ask(2, "cmd=unpublish_name service=a"), "cmd=unpublish_result info=ok rc=0 msg=success\n");
  EXPECT_EQ(Ask(2, "cmd=unpublish_name service=a"), "cmd=unpublish_result info=fail rc=1 msg=service_not_found\n");
  EXPECT_EQ(Ask(3, "cmd=initack pmiid=3"), "cmd=initack\ncmd=set size=5\ncmd=set rank=3\ncmd=set debug=0\n");
  EXPECT_EQ(Ask(3, "cmd=finalize"), "cmd=finalize_ack\n");
  EXPECT_TRUE(owner.events.empty());
}

TEST_F(PmiServer, KnowsHowFarEachRankIs) {
  EXPECT_EQ(server.state(2), Server::State::kSilent);
  Ask(2, "cmd=init pmi_version=1 pmi_subversion=1");
  EXPECT_EQ(server.state(2), Server::State::kInitialised);
  EXPECT_EQ(server.state(3), Server::State::kSilent);
  Ask(2, "cmd=finalize");
  EXPECT_EQ(server.state(2), Server::State::kFinalised);
  Ask(2, "cmd=init pmi_version=1 pmi_subversion=1");
  EXPECT_EQ(server.state(2), Server::State::kInitialised);
}

TEST_F(PmiServer, RefusesOtherVersions) {
  EXPECT_EQ(Ask(2, "cmd=init pmi_version=3 pmi_subversion=0"), "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n");
  EXPECT_EQ(server.state(2), Server::State::kSilent);
}

TEST_F(PmiServer, BarrierEndsForAllAndBringsWhatOtherHostsPut) {
  Ask(2, "cmd=put kvsname=kvs_1 key=mine value=1");
  EXPECT_EQ(Ask(2, "cmd=barrier_in"), "");
  EXPECT_EQ(server.waiting(), 1u);
  EXPECT_TRUE(owner.fences.empty());
  EXPECT_EQ(Ask(3, "cmd=barrier_in"), "");
  ASSERT_EQ(owner.fences.size(), 1u);
  EXPECT_THAT(owner.fences[0], ElementsAre(Pair("mine", "1")));
  EXPECT_EQ(server.waiting(), 2u);
  server.EndFence({{"mine", "1"}, {"theirs", "2"}});
  EXPECT_EQ(server.waiting(), 0u);
  EXPECT_EQ(owner.Take(2), "cmd=barrier_out\n");
  EXPECT_EQ(owner.Take(3), "cmd=barrier_out\n");
  EXPECT_THAT(Ask(2, "cmd=get kvsname=kvs_1 key=theirs"), HasSubstr("value=2"));
  Ask(2, "cmd=barrier_in");
  Ask(3, "cmd=barrier_in");
  EXPECT_TRUE(owner.fences[1].empty()) << "what was put before is known already";
}

TEST_F(PmiServer, KeysAndValuesHaveTheAnnouncedLengths) {
  const auto put = [&](size_t key, size_t value) {
    return Ask(2, "cmd=put kvsname=kvs_1 key=" + std::string(key, 'k') + " value=" + std::string(value, 'v'));
  };
  EXPECT_THAT(put(63, 1023), HasSubstr("rc=0"));
  EXPECT_THAT(put(64, 1), HasSubstr("rc=-1 msg=key_too_long"));
  EXPECT_THAT(put(1, 1024), HasSubstr("rc=-1 msg=value_too_long"));
  EXPECT_THAT(put(0, 1), HasSubstr("rc=-1 msg=key_missing"));
  EXPECT_THAT(Ask(2, "cmd=put kvsname=kvs_2 key=a value=b"), HasSubstr("rc=-1 msg=kvs_not_found"));
  EXPECT_THAT(Ask(2, "cmd=put kvsname=kvs_1 key=a"), HasSubstr("rc=-1 msg=value_missing"));
  EXPECT_THAT(Ask(2, "cmd=get kvsname=kvs_2 key=a"), HasSubstr("rc=-1"));
}

TEST_F(PmiServer, SpawnIsForTheOwnerToAnswer) {
  EXPECT_EQ(Ask(2, "mcmd=spawn\nnprocs=1\nexecname=x\nendcmd"), "");
  ASSERT_EQ(owner.questions.size(), 1u);
  EXPECT_EQ(std::get<ask::Spawn>(owner.questions[0].second).commands[0].program, "x");
  server.TakeAnswer(2, owner.questions[0].first, {.code = 1, .why = "no x", .errors = {1}});
  EXPECT_EQ(owner.Take(2), "cmd=spawn_result rc=1 errcodes=1 msg=no%20x\n");
  server.TakeAnswer(2, owner.questions[0].first, {});
  server.TakeAnswer(7, "1", {});
  EXPECT_EQ(owner.Take(2), "") << "an answer comes once";
}

TEST_F(PmiServer, AbortReachesTheOwner) {
  Ask(3, "cmd=abort exitcode=7 error=no%20disk");
  Ask(2, "cmd=abort");
  EXPECT_THAT(owner.events, ElementsAre("abort 3 7 no disk", "abort 2 1 "));
}

TEST_F(PmiServer, NamesTheMisuse) {
  const auto misuse = [](const std::string& bytes) {
    FakeOwner other;
    Server one{{"kvs_1", 5, 9, {{2, 0}, {3, 0}}, {}}, &other};
    one.Receive(2, bytes);
    EXPECT_EQ(other.events.size(), 1u) << bytes;
    other.Take(2);
    one.Receive(2, "cmd=get_maxes\n");
    EXPECT_EQ(other.Take(2), "") << "after an error nothing is read";
    return other.events.empty() ? std::string() : other.events[0];
  };
  EXPECT_THAT(misuse("cmd=frobnicate\n"), HasSubstr("misuse 2 sent the PMI command 'frobnicate', which is unknown"));
  EXPECT_THAT(misuse("cmd=barrier_in\ncmd=barrier_in\n"), HasSubstr("misuse 2 entered the PMI barrier twice"));
  EXPECT_THAT(misuse("cmd=initack pmiid=3\n"), HasSubstr("misuse 2 introduced itself as the rank 3"));
  EXPECT_THAT(misuse("cmd=initack\n"), HasSubstr("misuse 2 introduced itself as the rank of nobody"));
  EXPECT_THAT(misuse("GET / HTTP/1.1\n"), HasSubstr("GET / HTTP/1.1"));
  EXPECT_THAT(misuse("mcmd=spawn\nnprocs=many\nendcmd\n"), HasSubstr("nprocs=many"));
}

TEST_F(PmiServer, SpacesOfTheirOwnCanBeMadeReadAndDestroyed) {
  EXPECT_EQ(Ask(2, "cmd=create_kvs"), "cmd=newkvs kvsname=kvs_1_1\n");
  EXPECT_THAT(Ask(2, "cmd=put kvsname=kvs_1_1 key=a value=1"), HasSubstr("rc=0"));
  EXPECT_THAT(Ask(3, "cmd=get kvsname=kvs_1_1 key=a"), HasSubstr("value=1"));
  EXPECT_THAT(Ask(3, "cmd=get kvsname=kvs_1 key=a"), HasSubstr("rc=-1"));
  EXPECT_EQ(Ask(2, "cmd=getbyidx kvsname=kvs_1_1 idx=0"), "cmd=getbyidx_results rc=0 nextidx=1 key=a val=1\n");
  EXPECT_EQ(Ask(2, "cmd=getbyidx kvsname=kvs_1_1 idx=1"), "cmd=getbyidx_results rc=-1 reason=no_more_keyvals\n");
  EXPECT_EQ(Ask(2, "cmd=getbyidx kvsname=kvs_1_1"), "cmd=getbyidx_results rc=-1 reason=no_more_keyvals\n");
  EXPECT_EQ(Ask(2, "cmd=destroy_kvs kvsname=kvs_1_1"), "cmd=kvs_destroyed rc=0 msg=success\n");
  EXPECT_THAT(Ask(2, "cmd=destroy_kvs kvsname=kvs_1_1"), HasSubstr("rc=-1 msg=kvs_not_found"));
  EXPECT_THAT(Ask(2, "cmd=getbyidx kvsname=kvs_1_1 idx=0"), HasSubstr("rc=-1"));
  for (size_t i = 0; i < Server::kMostSpaces; ++i) Ask(2, "cmd=create_kvs");
  EXPECT_THAT(Ask(2, "cmd=create_kvs"), HasSubstr("rc=-1 msg=more_than_256_spaces"));
}

TEST_F(PmiServer, OutOfBandChannelsOnlyListen) {
  EXPECT_EQ(Ask(2, "cmd=init_oob signal=SIGUSR1 pmi_version=1 pmi_subversion=1"), "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
  EXPECT_EQ(server.state(2), Server::State::kSilent);
  server.Announce({"abort", "rank 3 is gone"});
  EXPECT_EQ(owner.Take(2), "cmd=abort msg=rank%203%20is%20gone\n");
  EXPECT_EQ(owner.Take(3), "");
  EXPECT_THAT(owner.events, ElementsAre("signal 2 SIGUSR1"));
  Ask(2, "cmd=get_maxes");
  EXPECT_THAT(owner.events.back(), HasSubstr("misuse 2 sent a request on a connection that it opened for out-of-band messages"));
}

TEST_F(PmiServer, ASecondConnectionOfARankListens) {
  Ask(2, "cmd=init pmi_version=1 pmi_subversion=1");
  EXPECT_TRUE(server.Listen(2, Dialect::Text(Dialect::Side::kLauncher), {ask::Init{1, 1, true, {}}, {}}, ""));
  EXPECT_EQ(owner.out_of_band[2], "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
  EXPECT_TRUE(server.Listen(3, Dialect::Counted(Dialect::Side::kLauncher), {ask::Introduce{.rank = 3}, "1"}, "SIGUSR2"));
  EXPECT_THAT(owner.out_of_band[3], HasSubstr("cmd=fullinit-response;thrid=1;"));
  EXPECT_FALSE(server.Listen(3, Dialect::Text(Dialect::Side::kLauncher), {ask::Init{1, 1, true, {}}, {}}, ""));
  owner.out_of_band.clear();
  server.Announce({"checkpoint", ""});
  EXPECT_EQ(owner.out_of_band[2], "cmd=checkpoint\n");
  EXPECT_EQ(owner.out_of_band[3], "    15cmd=checkpoint;");
  EXPECT_THAT(owner.events, ElementsAre("signal 3 SIGUSR2"));
  EXPECT_EQ(owner.Take(2), "");
  server.StopListening(3);
  server.Announce({"abort", ""});
  EXPECT_EQ(owner.out_of_band[3], "    15cmd=checkpoint;");
  EXPECT_EQ(owner.events.size(), 1u);
}

TEST_F(PmiServer, TellsOfDeathsWhomeverAsked) {
  Ask(2, "cmd=init pmi_version=1 pmi_subversion=1");
  Ask(3, "cmd=init pmi_version=1 pmi_subversion=1");
  EXPECT_EQ(Ask(2, "cmd=watch_deaths"), "cmd=deaths_watched rc=0 msg=success\n");
  server.TellDeaths({4, 1});
  EXPECT_EQ(owner.Take(2), "cmd=died ranks=4,1\n");
  EXPECT_EQ(owner.Take(3), "") << "another library does not know the word";
  server.TellDeaths({1, 5, -1});
  EXPECT_EQ(owner.Take(2), "") << "it knows that, and the others are no ranks";
  server.TellDeaths({2});
  EXPECT_EQ(owner.Take(2), "");
  EXPECT_EQ(Ask(3, "cmd=watch_deaths"), "cmd=deaths_watched rc=0 msg=success\ncmd=died ranks=1,2,4\n");
  Ask(3, "cmd=finalize");
  server.TellDeaths({0});
  EXPECT_EQ(owner.Take(3), "") << "the next program on the connection may not know the word";
  EXPECT_EQ(Ask(3, "cmd=watch_deaths"), "cmd=deaths_watched rc=-1 msg=not_initialised\n");
}

TEST_F(PmiServer, TellsOfDeathsInOtherJobsByTheNamesOfTheseJobs) {
  const std::string one(32, 'a'), two(32, 'b');
  for (const int rank : {2, 3}) Ask(rank, "cmd=init pmi_version=1 pmi_subversion=1");
  EXPECT_EQ(Ask(2, "cmd=watch_deaths"), "cmd=deaths_watched rc=0 msg=success\n");
  server.TellDeaths({2, 700}, one);
  EXPECT_EQ(owner.Take(2), "cmd=died ranks=2,700 world=" + one + "\n") << "rank 2 of that job is not this one";
  server.TellDeaths({700, 1}, one);
  EXPECT_EQ(owner.Take(2), "cmd=died ranks=1 world=" + one + "\n");
  server.TellDeaths({1}, two);
  EXPECT_EQ(owner.Take(2), "cmd=died ranks=1 world=" + two + "\n");
  EXPECT_EQ(owner.Take(3), "");
  server.TellDeaths({4});
  EXPECT_EQ(Ask(3, "cmd=watch_deaths"),
            "cmd=deaths_watched rc=0 msg=success\ncmd=died ranks=4\ncmd=died ranks=1,2,700 world=" + one + "\ncmd=died ranks=1 world=" + two + "\n");
}

TEST_F(PmiServer, KeepsTheDeathsOfSoManyOtherJobs) {
  Ask(2, "cmd=init pmi_version=1 pmi_subversion=1");
  for (size_t i = 0; i <= Server::kMostWorlds; ++i) server.TellDeaths({0}, "world" + std::to_string(i));
  const std::string said = Ask(2, "cmd=watch_deaths");
  EXPECT_EQ(static_cast<size_t>(std::count(said.begin(), said.end(), '\n')), 1 + Server::kMostWorlds);
  EXPECT_THAT(said, Not(HasSubstr("world=world0\n")));
  EXPECT_THAT(said, HasSubstr("world=world" + std::to_string(Server::kMostWorlds) + "\n"));
}

TEST(PmiServerOfMany, TellsOfManyDeathsInLinesOfSomeLength) {
  FakeOwner owner;
  Server server({"kvs_1", 4000, 9, {{2, 0}}, {}}, &owner);
  server.Receive(2, "cmd=init pmi_version=1 pmi_subversion=1\ncmd=watch_deaths\n");
  owner.Take(2);
  std::vector<int> ranks;
  for (int rank = 1000; rank < 4000; ++rank) ranks.push_back(rank);
  server.TellDeaths(ranks);
  const auto dialect = Dialect::Text(Dialect::Side::kRank);
  dialect->Append(owner.Take(2));
  std::vector<int> heard;
  while (const auto died = dialect->NextAnswer()) {
    EXPECT_LE(died->answer.ranks.size(), Announcement::kMostRanks);
    heard.insert(heard.end(), died->answer.ranks.begin(), died->answer.ranks.end());
  }
  EXPECT_EQ(dialect->error(), "");
  EXPECT_EQ(heard, ranks);
}

// Ranks that speak PMI-2.
struct PmiServer2 : PmiServer {
  static std::string Part(const std::string& text) {
    const std::string length = std::to_string(text.size());
    return std::string(6 - length.size(), ' ') + length + text;
  }
  std::string Ask2(int rank, const std::string& text) {
    server.Receive(rank, Part(text));
    const std::string answer = owner.Take(rank);
    return answer.size() < 6 ? answer : answer.substr(6);
  }
  void Greet(int rank) {
    EXPECT_EQ(Ask(rank, "cmd=init pmi_version=2 pmi_subversion=0"), "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n");
    EXPECT_EQ(Ask2(rank, "cmd=fullinit;pmirank=" + std::to_string(rank) + ";threaded=FALSE;"),
              "cmd=fullinit-response;pmi-version=2;pmi-subversion=0;rank=" + std::to_string(rank) +
                  ";size=5;appnum=" + std::to_string(rank - 2) + ";debugged=FALSE;pmiverbose=FALSE;rc=0;");
  }
};

// The questions are Slurm's PMI-2 library's under hydra 4.0.2; the answers are hydra's, but for universeSize, which it does not know,
// a semicolon in a value, at which it cuts the value off, and value= for a name.
TEST_F(PmiServer2, AnswersAsHydraDoes) {
  Greet(2);
  EXPECT_EQ(Ask2(2, "cmd=job-getid;"), "cmd=job-getid-response;jobid=kvs_1;rc=0;");
  EXPECT_EQ(Ask2(2, "cmd=info-getjobattr;key=given;"), "cmd=info-getjobattr-response;found=TRUE;value=x;rc=0;");
  EXPECT_EQ(Ask2(2, "cmd=info-getjobattr;key=universeSize;"), "cmd=info-getjobattr-response;found=TRUE;value=9;rc=0;");
  EXPECT_EQ(Ask2(2, "cmd=info-getjobattr;key=nope;"), "cmd=info-getjobattr-response;found=FALSE;rc=0;");
  EXPECT_EQ(Ask2(2, "cmd=kvs-put;key=k0;value=v;;0;"), "cmd=kvs-put-response;rc=0;");
  EXPECT_EQ(Ask2(2, "cmd=kvs-get;jobid=;srcid=-1;key=k0;"), "cmd=kvs-get-response;found=TRUE;value=v;;0;rc=0;");
  EXPECT_EQ(Ask2(2, "cmd=kvs-get;jobid=kvs_1;srcid=0;key=zz;"), "cmd=kvs-get-response;found=FALSE;rc=0;");
  EXPECT_EQ(Ask2(2, "cmd=info-putnodeattr;key=na0;value=x;"), "cmd=info-putnodeattr-response;rc=0;");
  EXPECT_EQ(Ask2(2, "cmd=info-getnodeattr;key=na0;wait=TRUE;"), "cmd=info-getnodeattr-response;found=TRUE;value=x;rc=0;");
  EXPECT_EQ(Ask2(2, "cmd=info-getnodeattr;key=zz;wait=FALSE;"), "cmd=info-getnodeattr-response;found=FALSE;rc=0;");
  EXPECT_EQ(Ask2(2, "cmd=name-publish;name=svc;port=port 1;infokeycount=0;"), "cmd=name-publish-response;rc=0;");
  EXPECT_EQ(Ask2(2, "cmd=name-lookup;name=svc;infokeycount=0;"), "cmd=name-lookup-response;found=TRUE;value=port 1;port=port 1;rc=0;");
  EXPECT_EQ(Ask2(2, "cmd=name-lookup;name=svx;infokeycount=0;"), "cmd=name-lookup-response;found=FALSE;rc=1;errmsg=service not found;");
  EXPECT_EQ(Ask2(2, "cmd=name-unpublish;name=svc;infokeycount=0;"), "cmd=name-unpublish-response;rc=0;");
  EXPECT_EQ(Ask2(2, "cmd=name-unpublish;name=svc;infokeycount=0;"), "cmd=name-unpublish-response;rc=1;errmsg=service not found;");
  EXPECT_EQ(Ask2(2, "cmd=finalize;"), "cmd=finalize-response;rc=0;");
  EXPECT_EQ(server.state(2), Server::State::kFinalised);
  EXPECT_TRUE(owner.events.empty());
}

TEST_F(PmiServer2, RanksOfBothVersionsShareAJob) {
  Greet(2);
  Ask(3, "cmd=init pmi_version=1 pmi_subversion=1");
  Ask2(2, "cmd=kvs-put;key=a;value=1;");
  EXPECT_EQ(Ask2(2, "cmd=kvs-fence;thrid=7;"), "");
  EXPECT_EQ(Ask(3, "cmd=barrier_in"), "");
  ASSERT_EQ(owner.fences.size(), 1u);
  server.EndFence(owner.fences[0]);
  EXPECT_EQ(owner.Take(2).substr(6), "cmd=kvs-fence-response;thrid=7;rc=0;");
  EXPECT_EQ(owner.Take(3), "cmd=barrier_out\n");
  EXPECT_THAT(Ask(3, "cmd=get kvsname=kvs_1 key=a"), HasSubstr("value=1"));
}

TEST_F(PmiServer2, ThreadsGetTheirAnswersInAnyOrder) {
  owner.answers_names = false;
  Greet(2);
  EXPECT_EQ(Ask2(2, "cmd=info-getnodeattr;thrid=1;key=late;wait=TRUE;"), "");
  EXPECT_EQ(Ask2(2, "cmd=name-lookup;thrid=2;name=a;"), "");
  EXPECT_EQ(Ask2(2, "cmd=name-lookup;thrid=3;name=b;"), "");
  EXPECT_EQ(Ask2(2, "cmd=job-getid;thrid=4;"), "cmd=job-getid-response;thrid=4;jobid=kvs_1;rc=0;");
  server.TakeAnswer(2, owner.questions[1].first, {.value = "pb"});
  EXPECT_THAT(owner.Take(2), HasSubstr("thrid=3;found=TRUE;value=pb;"));
  Greet(3);
  EXPECT_EQ(Ask2(3, "cmd=info-putnodeattr;key=late;value=x;"), "cmd=info-putnodeattr-response;rc=0;");
  EXPECT_EQ(owner.Take(2).substr(6), "cmd=info-getnodeattr-response;thrid=1;found=TRUE;value=x;rc=0;");
  server.TakeAnswer(2, owner.questions[0].first, {.code = 1, .why = "service not found"});
  EXPECT_THAT(owner.Take(2), HasSubstr("thrid=2;found=FALSE;rc=1;"));
}

TEST_F(PmiServer2, NoRankMakesItGrowWithoutBound) {
  owner.answers_names = false;
  Greet(2);
  for (size_t i = 0; i < Server::kMostPending; ++i) Ask2(2, "cmd=name-lookup;thrid=2;name=a;");
  EXPECT_THAT(Ask2(2, "cmd=name-lookup;thrid=2;name=a;"), HasSubstr("rc=-1;errmsg=more than 1024 requests wait"));
  for (size_t i = 0; i < Server::kMostPending; ++i) Ask2(2, "cmd=info-getnodeattr;key=late;wait=TRUE;");
  EXPECT_THAT(Ask2(2, "cmd=info-getnodeattr;key=late;wait=TRUE;"), HasSubstr("more than 1024 requests wait"));
  for (size_t i = 0; i < Server::kMostSpaces; ++i) Ask2(2, "cmd=job-connect;jobid=" + std::to_string(i) + ";");
  EXPECT_THAT(Ask2(2, "cmd=job-connect;jobid=z;"), HasSubstr("more than 256 jobs are connected"));
  EXPECT_TRUE(owner.events.empty());
}

TEST_F(PmiServer2, ConnectedJobsCanBeRead) {
  Greet(2);
  EXPECT_THAT(Ask2(2, "cmd=kvs-get;jobid=kvs_0;key=theirs;"), HasSubstr("rc=-1;errmsg=kvs not found"));
  EXPECT_EQ(Ask2(2, "cmd=job-connect;jobid=kvs_0;"), "cmd=job-connect-response;kvscopy=FALSE;rc=0;");
  EXPECT_THAT(Ask2(2, "cmd=kvs-get;jobid=kvs_0;key=theirs;"), HasSubstr("found=TRUE;value=9;"));
  EXPECT_EQ(Ask2(2, "cmd=kvs-getall;jobid=kvs_0;"),
            "cmd=kvs-getall-paircount-response;npair=1;" + Part("cmd=kvs-getall-pair-response;key=theirs;val=9;") +
                Part("cmd=kvs-getall-response;rc=0;"));
  // One that has no rank here is copied by those who know it.
  EXPECT_EQ(Ask2(2, "cmd=job-connect;jobid=far;"), "cmd=job-connect-response;kvscopy=TRUE;rc=0;");
  EXPECT_EQ(Ask2(2, "cmd=kvs-putall;jobid=far;npair=1;"), "");
  EXPECT_EQ(Ask2(2, "cmd=kvs-putall-pair;key=a;val=1;"), "cmd=kvs-putall-response;rc=0;");
  EXPECT_THAT(Ask2(2, "cmd=kvs-get;jobid=far;key=a;"), HasSubstr("found=TRUE;value=1;"));
  EXPECT_EQ(Ask2(2, "cmd=kvs-putall;jobid=kvs_0;npair=1;"), "");
  EXPECT_EQ(Ask2(2, "cmd=kvs-putall-pair;key=a;val=1;"),
            "cmd=kvs-putall-response;rc=3;errmsg=the values of job kvs_0 need not be copied here;");
  EXPECT_THAT(Ask2(2, "cmd=kvs-getall;jobid=nowhere;"), HasSubstr("job nowhere is not connected"));
  EXPECT_THAT(Ask2(2, "cmd=job-connect;"), HasSubstr("jobid missing"));
}

TEST_F(PmiServer2, UnknownCommandsAreAnsweredSo) {
  Greet(2);
  EXPECT_EQ(Ask2(2, "cmd=ring;thrid=1;ring-count=1;"), "cmd=ring-response;thrid=1;rc=14;errmsg=the PMI command ring is not known here;");
}

TEST_F(PmiServer2, NamesTheMisuse) {
  const auto misuse = [&](const std::vector<std::string>& bytes) {
    FakeOwner other;
    Server one{{"kvs_1", 5, 9, {{2, 0}}, {}}, &other};
    one.Receive(2, "cmd=init pmi_version=2 pmi_subversion=0\n");
    for (const std::string& part : bytes) one.Receive(2, part);
    return other.events.empty() ? other.Take(2) : other.events.back();
  };
  const std::string hello = Part("cmd=fullinit;pmirank=2;");
  EXPECT_THAT(misuse({Part("cmd=kvs-fence;")}), HasSubstr("misuse 2 sent a PMI command before fullinit, whose answer is kvs-fence-response"));
  EXPECT_THAT(misuse({hello, hello}), HasSubstr("said the PMI command fullinit twice"));
  EXPECT_THAT(misuse({Part("cmd=fullinit;pmirank=3;")}), HasSubstr("introduced itself as the rank 3"));
  EXPECT_THAT(misuse({Part("cmd=auth-response-complete;authinfo=x;")}), HasSubstr("answered a PMI challenge that was not sent"));
  EXPECT_THAT(misuse({hello, "cmd=init pmi_version=2 pmi_subversion=0\n"}), HasSubstr("'cmd=in' instead of the length of a message"));
  EXPECT_THAT(misuse({hello, Part("cmd=kvs-fence;"), Part("cmd=kvs-fence;")}), HasSubstr("entered the PMI barrier twice"));
  EXPECT_THAT(misuse({Part("cmd=fullinit;pmirank=2;authtype=magic;")}), HasSubstr("authtype magic is not known, challenge-sha256 is"));
  EXPECT_THAT(misuse({Part("cmd=fullinit;pmirank=2;authtype=challenge-sha256;")}), HasSubstr("there is no secret to prove here"));
}

TEST_F(PmiServer2, WhereASecretIsSetItMustBeProven) {
  const auto start = [&](FakeOwner& other, const std::string& fullinit) {
    auto one = std::make_unique<Server>(Server::Setup{"kvs_1", 5, 9, {{2, 0}}, {}, "kvs_0", "secret"}, &other);
    one->Receive(2, "cmd=init pmi_version=2 pmi_subversion=0\n" + Part(fullinit));
    return one;
  };
  const auto challenge = [](const std::string& sent) {
    const size_t at = sent.find("authinfo=") + 9;
    return sent.substr(at, sent.find(';', at) - at);
  };
  FakeOwner good, bad, silent;
  auto one = start(good, "cmd=fullinit;pmirank=2;authtype=challenge-sha256;");
  one->Receive(2, Part("cmd=auth-response-complete;authinfo=" + ProofFor("secret", challenge(good.Take(2))) + ";"));
  EXPECT_THAT(good.Take(2), HasSubstr("rank=2;size=5;appnum=0;spawner-jobid=kvs_0;"));
  EXPECT_EQ(one->state(2), Server::State::kInitialised);

  auto two = start(bad, "cmd=fullinit;pmirank=2;authtype=challenge-sha256;");
  two->Receive(2, Part("cmd=auth-response-complete;authinfo=" + ProofFor("guess", challenge(bad.Take(2))) + ";"));
  EXPECT_THAT(bad.events, ElementsAre("misuse 2 does not know the secret that PMI asks for"));
  EXPECT_EQ(two->state(2), Server::State::kSilent);

  auto three = start(silent, "cmd=fullinit;pmirank=2;");
  EXPECT_THAT(silent.Take(2), HasSubstr("rc=3;errmsg=authtype=challenge-sha256 is needed here;"));
  EXPECT_EQ(three->state(2), Server::State::kSilent);
}

TEST_F(PmiServer2, WhereASecretIsSetVersion1HasNoPlace) {
  FakeOwner other;
  Server one{{"kvs_1", 5, 9, {{2, 0}}, {}, "", "secret"}, &other};
  one.Receive(2, "cmd=init pmi_version=1 pmi_subversion=1\n");
  EXPECT_EQ(other.Take(2), "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=-1\n");
  EXPECT_EQ(one.state(2), Server::State::kSilent);
  one.Receive(2, "cmd=get kvsname=kvs_1 key=a\n");
  EXPECT_EQ(other.Take(2), "");
  ASSERT_EQ(other.events.size(), 1u);
  EXPECT_THAT(other.events[0], HasSubstr("without proof"));
}

TEST_F(PmiServer2, TheNextProgramOnTheConnectionMaySpeakAnotherVersion) {
  Greet(2);
  Ask2(2, "cmd=finalize;");
  Ask(2, "cmd=init pmi_version=1 pmi_subversion=1");
  EXPECT_EQ(server.state(2), Server::State::kInitialised);
  Ask(2, "cmd=finalize");
  Greet(2);
}

}  // namespace
}  // namespace weft::pmi
