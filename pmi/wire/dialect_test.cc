#include "pmi/wire/dialect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::pmi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Side = Dialect::Side;

std::string Part(const std::string& text) {
  const std::string length = std::to_string(text.size());
  return std::string(6 - length.size(), ' ') + length + text;
}

std::unique_ptr<Dialect> Make(int version, Side side) { return version == 1 ? Dialect::Text(side) : Dialect::Counted(side); }

Question AskIn(int version, const std::string& bytes) {
  auto dialect = Make(version, Side::kLauncher);
  dialect->Append(bytes);
  auto question = dialect->NextQuestion();
  EXPECT_TRUE(question) << bytes << ": " << dialect->error();
  return question.value_or(Question{});
}

Answered AnswerIn(int version, const std::string& bytes) {
  auto dialect = Make(version, Side::kRank);
  dialect->Append(bytes);
  auto answered = dialect->NextAnswer();
  EXPECT_TRUE(answered) << bytes << ": " << dialect->error();
  return answered.value_or(Answered{});
}

std::string ErrorOf(int version, const std::string& bytes) {
  auto dialect = Make(version, Side::kLauncher);
  dialect->Append(bytes);
  while (dialect->NextQuestion()) {
  }
  return dialect->error();
}

const SpawnCommand kCommand{"./a b", {"-x=1 ", "y"}, 2, {{"host", "one,two"}, {"wdir", "/tmp"}}};
const ask::Spawn kSpawn{{kCommand, {"/bin/true", {}, 0, {}}}, {{"PARENT", "tag#0$port#1$"}}};

// Every request that the version has words for, written by a rank, is understood by a launcher.
TEST(PmiDialect, RequestsKeepTheirMeaning) {
  const std::vector<Request> both = {ask::Finalize{},         ask::Fence{},      ask::JobId{},           kSpawn,
                                     ask::Abort{7, "no disk"}, ask::Lookup{"s"}, ask::Publish{"a service", "tcp:1 100% %20"}, ask::Unpublish{"s"},
                                     ask::Disconnect{"j"}, ask::WatchDeaths{}};
  std::vector<Request> text = {ask::Init{2, 0}, ask::Init{2, 0, true, "SIGUSR1"}, ask::Init{1, 1, true, ""}, ask::Introduce{.rank = 3},
                               ask::Put{"kvs", "k", "a=b"}, ask::Get{"kvs", "k"}, ask::UniverseSize{}, ask::Application{}, ask::Maxes{},
                               ask::CreateSpace{}, ask::DestroySpace{"kvs"}, ask::GetByIndex{"kvs", 4}};
  std::vector<Request> counted = {ask::Introduce{3, "job.1", true, "challenge-sha256"}, ask::Prove{"abc"}, ask::Put{{}, "k", "a;b \n"},
                                  ask::Get{"job.1", "k", 5}, ask::Get{"", "k"}, ask::Connect{"j"}, ask::GetAll{"j"},
                                  ask::PutAll{"j", {{"a", "1"}, {"b", ""}}}, ask::PutAll{"j", {}}, ask::GetNodeAttribute{"n", true},
                                  ask::PutNodeAttribute{"n", "v"}, ask::GetJobAttribute{"universeSize"}, ask::Unknown{"ring"}};
  for (const auto& [version, requests] : {std::pair{1, &text}, {2, &counted}}) {
    requests->insert(requests->end(), both.begin(), both.end());
    auto rank = Make(version, Side::kRank);
    auto launcher = Make(version, Side::kLauncher);
    for (const Request& request : *requests) {
      const std::string bytes = rank->Write({request, version == 2 ? "t;1" : ""});
      for (const char c : bytes) launcher->Append({&c, 1});
      const auto question = launcher->NextQuestion();
      ASSERT_TRUE(question) << bytes << launcher->error();
      EXPECT_TRUE(question->request == request) << bytes;
      const bool has_thread = version == 2 && !std::holds_alternative<ask::Introduce>(request) &&
                              !std::holds_alternative<ask::Prove>(request) && !std::holds_alternative<ask::Abort>(request);
      if (has_thread) {
        EXPECT_EQ(question->thread, "t;1") << bytes;
      }
    }
  }
}

TEST(PmiDialect, AnswersKeepTheirMeaning) {
  const std::vector<std::pair<Request, Answer>> both = {
      {ask::Finalize{}, {}},
      {ask::Fence{}, {}},
      {ask::WatchDeaths{}, {}},
      {ask::JobId{}, {.value = "job.1"}},
      {ask::Put{}, {}},
      {ask::Get{}, {.value = "a=b"}},
      {ask::Lookup{}, {.value = "tcp:1"}},
      {ask::Publish{}, {.code = 1, .why = "name_taken"}},
      {ask::Spawn{}, {.value = "job.2"}},
      {ask::Spawn{}, {.code = 1, .why = "no such program", .errors = {0, 13}}},
  };
  const std::vector<std::pair<Request, Answer>> text = {
      {ask::Init{}, {.number = 1, .subversion = 1}},
      {ask::Introduce{}, {.identity = {2, 4}}},
      {ask::Maxes{}, {.limits = {256, 64, 1024}}},
      {ask::Application{}, {.number = 3}},
      {ask::CreateSpace{}, {.value = "kvs_9"}},
      {ask::DestroySpace{}, {.code = -1, .why = "kvs_not_found"}},
      {ask::GetByIndex{}, {.number = 5, .values = {{"k", "v"}}}},
      {ask::GetByIndex{}, {.code = -1, .why = "no_more_keyvals"}},
  };
  const std::vector<std::pair<Request, Answer>> counted = {
      {ask::Introduce{}, {.challenge = "42"}},
      {ask::Introduce{}, {.identity = {2, 4, 1, "job.0"}}},
      {ask::Prove{}, {.code = 3, .why = "wrong; proof", .identity = {-1, -1, -1}}},
      {ask::Connect{}, {.copy = true}},
      {ask::GetAll{}, {.values = {{"a", "1"}, {"b", "2;"}}}},
      {ask::PutAll{}, {}},
      {ask::GetNodeAttribute{}, {}},
      {ask::GetJobAttribute{}, {.value = "(vector,(0,1,1))"}},
      {ask::Disconnect{}, {.code = 1, .why = "not connected"}},
      {ask::Unknown{"ring"}, {.code = 2, .why = "unknown"}},
  };
  for (const auto& [version, own] : {std::pair{1, &text}, {2, &counted}}) {
    auto answers = both;
    answers.insert(answers.end(), own->begin(), own->end());
    auto rank = Make(version, Side::kRank);
    auto launcher = Make(version, Side::kLauncher);
    for (const auto& [request, answer] : answers) {
      const std::string bytes = launcher->Write({request, version == 2 ? "t" : ""}, answer);
      for (const char c : bytes) rank->Append({&c, 1});
      const auto answered = rank->NextAnswer();
      ASSERT_TRUE(answered) << bytes << rank->error();
      EXPECT_EQ(answered->answer.code, answer.code) << bytes;
      EXPECT_EQ(answered->answer.why, answer.why) << bytes;
      EXPECT_EQ(answered->answer.value, answer.value) << bytes;
      EXPECT_EQ(answered->answer.challenge, answer.challenge) << bytes;
      EXPECT_EQ(answered->answer.number, answer.number) << bytes;
      EXPECT_EQ(answered->answer.copy, answer.copy) << bytes;
      EXPECT_EQ(answered->answer.limits, answer.limits) << bytes;
      EXPECT_EQ(answered->answer.values, answer.values) << bytes;
      EXPECT_EQ(answered->answer.errors, answer.errors) << bytes;
      if (std::holds_alternative<ask::Introduce>(request) && !answer.challenge) {
        EXPECT_EQ(answered->answer.identity, answer.identity);
      }
      if (version == 2) {
        EXPECT_EQ(answered->thread, "t");
      }
      if (!answer.challenge) {
        EXPECT_EQ(answered->command, rank->AnswerTo(request));
      }
    }
  }
}

TEST(PmiDialect, AnnouncementsKeepTheirMeaning) {
  for (const auto& [launcher, rank] : {std::pair{Dialect::Text(Dialect::Side::kLauncher), Dialect::Text(Dialect::Side::kRank)},
                                       {Dialect::Counted(Dialect::Side::kLauncher), Dialect::Counted(Dialect::Side::kRank)}}) {
    for (const Announcement& announcement : {Announcement{"abort", "rank 1 is gone: 100% sure"}, Announcement{"checkpoint"}, Announcement{"died", "", {0, 70, 3}},
                                             Announcement{"died", "", {2}, "00112233445566778899aabbccddeeff"}}) {
      rank->Append(launcher->Write(announcement));
      const auto heard = rank->NextAnswer();
      ASSERT_TRUE(heard);
      EXPECT_EQ((Announcement{heard->command, heard->answer.why, heard->answer.ranks, heard->answer.world}), announcement);
    }
  }
}

TEST(PmiDialect, DeathsOfWhatIsNoListOfRanksAreNobodys) {
  for (const char* ranks : {"", "x", "1,", ",1", "1,,2", "-1", "99999999999"}) {
    EXPECT_TRUE(AnswerIn(1, std::string("cmd=died ranks=") + ranks + "\n").answer.ranks.empty()) << ranks;
  }
}

TEST(PmiDialect, OneHasNoWordsForWhatOnlyTheOtherKnows) {
  EXPECT_EQ(Dialect::Text(Side::kRank)->Write({ask::Connect{"j"}, ""}), "");
  EXPECT_EQ(Dialect::Text(Side::kRank)->Write({ask::GetNodeAttribute{"k"}, ""}), "");
  EXPECT_EQ(Dialect::Counted(Side::kRank)->Write({ask::Maxes{}, ""}), "");
  EXPECT_EQ(Dialect::Counted(Side::kLauncher)->Write({ask::Abort{}, ""}, {}), "");
}

TEST(PmiDialect, TheRestIsForTheDialectThatInitNames) {
  auto text = Dialect::Text(Side::kLauncher);
  text->Append("cmd=init pmi_version=2 pmi_subversion=0\n38    cmd=fullinit;pmira");
  EXPECT_TRUE(text->NextQuestion()->request == Request(ask::Init{2, 0}));
  auto counted = Dialect::Counted(Side::kLauncher);
  counted->Append(text->TakeRest());
  counted->Append("nk=0;threaded=FALSE;");
  EXPECT_TRUE(counted->NextQuestion()->request == Request(ask::Introduce{.rank = 0}));
}

// As MPICH 4.0 and later ones send them: the preput pairs in each or in the first; and Slurm's ranks, in PMI-2.
TEST(PmiDialect, SpawnsOfSeveralProgramsAreOne) {
  const std::string one = "mcmd=spawn\nnprocs=2\nexecname=a\ntotspawns=2\nspawnssofar=1\narg1=x y\nargcnt=1\npreput_num=1\npreput_key_0=k\n"
                          "preput_val_0=v\ninfo_num=0\nendcmd\n";
  for (const char* preput : {"preput_num=1\npreput_key_0=k\npreput_val_0=v\n", ""}) {
    const Question question = AskIn(1, one + "mcmd=spawn\nnprocs=1\nexecname=b\ntotspawns=2\nspawnssofar=2\nargcnt=0\n" + preput +
                                           "info_num=1\ninfo_key_0=wdir\ninfo_val_0=/tmp\nendcmd\n");
    const ask::Spawn& spawn = std::get<ask::Spawn>(question.request);
    EXPECT_THAT(spawn.commands, ElementsAre(SpawnCommand{"a", {"x y"}, 2, {}}, SpawnCommand{"b", {}, 1, {{"wdir", "/tmp"}}}));
    EXPECT_THAT(spawn.preput, ElementsAre(Pair("k", "v")));
  }
  const ask::Spawn two{{{"a", {"x y"}, 2, {}}, {"b", {}, 1, {}}}, {}};
  EXPECT_TRUE(AskIn(2, Part("cmd=spawn;ncmds=2;preputcount=0;subcmd=a;maxprocs=2;argc=1;argv0=x y;subcmd=b;maxprocs=1;argc=0;")).request ==
              Request(two));
  EXPECT_TRUE(AskIn(2, Part("cmd=spawn;ncmds=2;preputcount=0;subcmd=a;maxprocs=2;argc=1;infokeycount=0;argv0=x y;subcmd=b;maxprocs=1;argc=0;"
                            "infokeycount=0;"))
                  .request == Request(two));
  EXPECT_TRUE(AskIn(2, Part("cmd=spawn;thrid=5;ncmds=2;preputcount=0;") +
                           Part("cmd=spawn-cmd;thrid=5;maxprocs=2;argc=2;argv0=a;argv1=x y;infokeycount=0;") +
                           Part("cmd=spawn-cmd;thrid=5;maxprocs=1;argc=1;argv0=b;"))
                  .request == Request(two));
}

TEST(PmiDialect, BooleansAreReadInAnyCase) {
  for (const char* yes : {"TRUE", "true", "True"}) {
    EXPECT_TRUE(std::get<ask::GetNodeAttribute>(AskIn(2, Part(std::string("cmd=info-getnodeattr;key=k;wait=") + yes + ";")).request).wait);
  }
  for (const char* no : {"FALSE", "false", "", "TRU", "TRUEx"}) {
    EXPECT_FALSE(std::get<ask::GetNodeAttribute>(AskIn(2, Part(std::string("cmd=info-getnodeattr;key=k;wait=") + no + ";")).request).wait);
  }
}

TEST(PmiDialect, ReadsWhatOnlyOneLauncherAnswers) {
  EXPECT_EQ(AnswerIn(1, "cmd=publish_result info=fail\n").answer.code, 1);
  EXPECT_EQ(AnswerIn(1, "cmd=lookup_result info=ok port=a\n").answer.value, "a");
  EXPECT_EQ(AnswerIn(1, "cmd=get_result rc=1\n").answer.code, 1);
  EXPECT_EQ(AnswerIn(1, "cmd=appnum rc=0 appnum=-1\n").answer.number, -1);
  EXPECT_EQ(AnswerIn(1, "cmd=universe_size size=infinite\n").answer.number, -1);
  const Answered refusal = AnswerIn(1, "cmd=spawn-response;rc=14;errmsg=spawn failed;");
  EXPECT_EQ(refusal.command, "spawn_result");
  EXPECT_EQ(refusal.answer.code, 14);
  EXPECT_EQ(refusal.answer.why, "spawn failed");
  EXPECT_THAT(AnswerIn(1, "cmd=spawn_result rc=0 jobid=7.0-1 errcodes=0,2\n").answer.errors, ElementsAre(0, 2));

  EXPECT_EQ(AnswerIn(2, Part("cmd=name-lookup-response;rc=0;value=p;")).answer.value, "p");
  EXPECT_EQ(AnswerIn(2, Part("cmd=name-lookup-response;port=p;found=TRUE;rc=0;")).answer.value, "p");
  EXPECT_EQ(AnswerIn(2, Part("cmd=name-lookup-response;found=FALSE;rc=1;")).answer.value, std::nullopt);
  EXPECT_EQ(AnswerIn(2, Part("cmd=kvs-get-response;flag=true;value=v;rc=0;")).answer.value, "v");
  EXPECT_EQ(AnswerIn(2, Part("cmd=info-getjobattr-response;found=FALSE;rc=0;")).answer.value, std::nullopt);
  EXPECT_EQ(AnswerIn(2, Part("cmd=info-getnodeattr-response;rc=1;errmsg=not_found;")).answer.value, std::nullopt);
  EXPECT_THAT(AnswerIn(2, Part("cmd=spawn-response;rc=1;jobid=7.0-1;errcodes=1,x;")).answer.errors, ElementsAre(1, 1));
  EXPECT_TRUE(AnswerIn(2, Part("cmd=job-connect-response;kvscopy=yes;rc=0;")).answer.copy);
  EXPECT_EQ(std::get<ask::Introduce>(AskIn(2, Part("cmd=fullinit;pmijobid=7.0;srcid=2;threaded=FALSE;")).request).rank, 2);
}

TEST(PmiDialect, IntroductionTakesFourLines) {
  const Answered answered = AnswerIn(1, "cmd=initack\ncmd=set size=2\ncmd=set rank=1\ncmd=set debug=0\n");
  EXPECT_EQ(answered.answer.identity.size, 2);
  EXPECT_EQ(answered.answer.identity.rank, 1);
  auto dialect = Dialect::Text(Side::kRank);
  dialect->Append("cmd=initack\ncmd=set rank=2\n");
  EXPECT_FALSE(dialect->NextAnswer());
  EXPECT_THAT(dialect->error(), HasSubstr("'cmd=set rank=2?' where size= belongs"));
}

TEST(PmiDialect, NamesWhatIsWrongInText) {
  EXPECT_THAT(ErrorOf(1, "cmd=frobnicate\n"), HasSubstr("the PMI command 'frobnicate', which is unknown"));
  EXPECT_THAT(ErrorOf(1, "hello\n"), HasSubstr("does not begin with cmd= but is 'hello'"));
  EXPECT_THAT(ErrorOf(1, "mcmd=spawn\nnprocs=-1\nexecname=a\nendcmd\n"), HasSubstr("nprocs=-1, which is not a number from 0 to 65536"));
  EXPECT_THAT(ErrorOf(1, "mcmd=spawn\nnprocs=70000\nexecname=a\nendcmd\n"), HasSubstr("nprocs=70000"));
  EXPECT_THAT(ErrorOf(1, "mcmd=spawn\nnprocs=1\nargcnt=1\nendcmd\n"), HasSubstr("argcnt=1, but without arg1"));
  EXPECT_THAT(ErrorOf(1, "mcmd=spawn\nnprocs=1\ninfo_num=1\nendcmd\n"), HasSubstr("info_num=1, but without info_key_0"));
  EXPECT_THAT(ErrorOf(1, "mcmd=spawn\nnprocs=1\npreput_num=x\nendcmd\n"), HasSubstr("preput_num=x, which is not a number"));
  EXPECT_THAT(ErrorOf(1, "mcmd=spawn\nnprocs=1\ntotspawns=2\nspawnssofar=2\nendcmd\n"), HasSubstr("program 2 of 2 of a spawn, where number 1"));
  EXPECT_THAT(ErrorOf(1, "mcmd=spawn\nnprocs=1\ntotspawns=0\nspawnssofar=1\nendcmd\n"), HasSubstr("program 1 of 0"));
  EXPECT_THAT(ErrorOf(1, "mcmd=spawn\nnprocs=1\ntotspawns=99999\nendcmd\n"), HasSubstr("program 1 of 99999"));
  EXPECT_THAT(ErrorOf(1, "mcmd=spawn\nnprocs=1\ntotspawns=2\nendcmd\ncmd=barrier_in\n"), HasSubstr("cmd=barrier_in between the programs"));
  std::string big;
  for (int i = 1; i <= 1000; ++i) {
    big += "mcmd=spawn\nnprocs=1\ntotspawns=1000\nspawnssofar=" + std::to_string(i) + "\nargcnt=1\narg1=" + std::string(16000, 'x') + "\nendcmd\n";
  }
  EXPECT_THAT(ErrorOf(1, big), HasSubstr("a spawn of more than 4194304 bytes"));
}

TEST(PmiDialect, NamesWhatIsWrongInCountedMessages) {
  EXPECT_THAT(ErrorOf(2, "GET / HTTP/1.1\r\n"), HasSubstr("'GET / ' instead of the length of a message"));
  EXPECT_THAT(ErrorOf(2, Part("cmd=spawn;ncmds=9999;")), HasSubstr("ncmds=9999, which is not a number from 0 to 1024"));
  EXPECT_THAT(ErrorOf(2, Part("cmd=spawn;preputcount=0;")), HasSubstr("ncmds=, which is not a number"));
  EXPECT_THAT(ErrorOf(2, Part("cmd=spawn;ncmds=1;preputcount=1;subcmd=a;")), HasSubstr("without ppkey0= and ppval0="));
  EXPECT_THAT(ErrorOf(2, Part("cmd=spawn;ncmds=1;subcmd=a;maxprocs=-2;")), HasSubstr("maxprocs=-2"));
  EXPECT_THAT(ErrorOf(2, Part("cmd=spawn;ncmds=1;subcmd=a;maxprocs=1;argc=1;argv7=x;")), HasSubstr("argc=1, but without argv0="));
  EXPECT_THAT(ErrorOf(2, Part("cmd=spawn;ncmds=2;subcmd=a;maxprocs=1;argc=0;")), HasSubstr("maxprocs=, which is not"));
  EXPECT_THAT(ErrorOf(2, Part("cmd=spawn;ncmds=1;subcmd=a;maxprocs=1;argc=0;infokeycount=1;infokey0=a;")),
              HasSubstr("without infokey0= and infoval0="));
  EXPECT_THAT(ErrorOf(2, Part("cmd=spawn-cmd;maxprocs=1;argc=0;")), HasSubstr("cmd=spawn-cmd that follows no cmd=spawn"));
  EXPECT_THAT(ErrorOf(2, Part("cmd=spawn;thrid=1;ncmds=1;") + Part("cmd=spawn-cmd;thrid=2;maxprocs=1;argc=0;")), HasSubstr("of the same thread"));
  EXPECT_THAT(ErrorOf(2, Part("cmd=spawn;ncmds=1;") + Part("cmd=kvs-fence;")), HasSubstr("cmd=kvs-fence where a part"));
  EXPECT_THAT(ErrorOf(2, Part("cmd=kvs-putall;jobid=j;npair=99999;")), HasSubstr("npair=99999"));
  EXPECT_THAT(ErrorOf(2, Part("cmd=kvs-putall-pair;key=a;val=b;")), HasSubstr("follows no cmd=kvs-putall"));
}

}  // namespace
}  // namespace weft::pmi
