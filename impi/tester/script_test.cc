#include "impi/tester/script.h"

#include <gtest/gtest.h>

namespace weft::impi::tester {
namespace {

constexpr const char* kServerHead = "clause 2.3.4\nabout It works.\ntarget server\nclients 2\n";
constexpr const char* kClientHead =
    "clause 3.7\nabout It works.\ntarget client\nclients 3\nclient 0 hosts 1+2\nunder-test 1 ranks 2\n";

Script Good(const std::string& text) {
  auto script = ParseScript("a.script", text);
  EXPECT_TRUE(script.ok()) << TextOf(script.error());
  return script.ok() ? *script : Script();
}

std::string Error(const std::string& text) {
  const auto script = ParseScript("a.script", text);
  return script.ok() ? "none" : TextOf(script.error());
}

TEST(Script, OfAServer) {
  const Script script =
      Good(std::string(kServerHead) +
           "authentication none\noptions -auth 0,1\npatience 7   # seconds\n\n# A comment.\n"
           "open a\nsay a COLL length=-1 IMPI_C_NHOSTS 3\nhear a 0x58 any:2 rest\nquiet a\nexits failure");
  EXPECT_EQ(script.clause, "2.3.4");
  EXPECT_EQ(script.about, "It works.");
  EXPECT_EQ(script.clients, 2);
  EXPECT_FALSE(script.has_key);
  EXPECT_TRUE(script.has_none);
  EXPECT_EQ(script.options, (std::vector<std::string>{"-auth", "0,1"}));
  EXPECT_EQ(script.patience, std::chrono::seconds(7));
  ASSERT_EQ(script.steps.size(), 5u);
  EXPECT_EQ(script.steps[0].kind, Step::Kind::kOpen);
  EXPECT_EQ(script.steps[0].line, 10);
  EXPECT_EQ(script.steps[1].code, CommandCode::kColl);
  EXPECT_EQ(script.steps[1].length, -1);
  EXPECT_EQ(script.steps[1].values.size(), 8u);
  EXPECT_EQ(script.steps[1].text, "say a COLL length=-1 IMPI_C_NHOSTS 3");
  EXPECT_EQ(static_cast<uint32_t>(script.steps[2].code), 0x58u);
  EXPECT_EQ(script.steps[4].status, Step::kFailure);
}

TEST(Script, KnowsWhereRanksAndHostsAre) {
  const Script script = Good(std::string(kClientHead) + "exchange\n");
  EXPECT_EQ(script.ranks(), 6);
  EXPECT_EQ(script.hosts(), 4);
  const int clients[] = {0, 0, 0, 1, 1, 2}, hosts[] = {0, 1, 1, 2, 2, 3};
  for (int rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(script.ClientOf(rank), clients[rank]);
    EXPECT_EQ(script.HostOf(rank), hosts[rank]);
  }
  EXPECT_EQ(script.ClientOfHost(2), 1);
  ASSERT_EQ(script.steps.size(), 2u);
  EXPECT_EQ(script.steps[0].kind, Step::Kind::kAccept);
  EXPECT_EQ(script.steps[1].kind, Step::Kind::kExchange);
}

// Hosts of lower ranks accept, and hear its rank; those of higher ranks connect, and say theirs.
TEST(Script, TheDanceIsWrittenOut) {
  const Script script = Good(std::string(kClientHead) + "dance\n");
  std::vector<std::pair<Step::Kind, std::string>> steps;
  for (const Step& step : script.steps) steps.emplace_back(step.kind, step.connection);
  using enum Step::Kind;
  EXPECT_EQ(steps, (std::vector<std::pair<Step::Kind, std::string>>{{kAccept, "host0"},
                                                                    {kHearWords, "host0"},
                                                                    {kAccept, "host1"},
                                                                    {kHearWords, "host1"},
                                                                    {kOpen, "host3"},
                                                                    {kWords, "host3"}}));
  EXPECT_EQ(script.steps[1].values.bytes(), (Bytes{0, 0, 0, 2}));
  EXPECT_EQ(script.steps[5].values.bytes(), (Bytes{0, 0, 0, 3}));
}

TEST(Script, TheBarrierIsWhatConcernsTheClientUnderTest) {
  const Script script = Good(std::string(kClientHead) + "barrier\n");
  ASSERT_EQ(script.steps.size(), 2u);
  EXPECT_EQ(script.steps[0].kind, Step::Kind::kExpectPacket);
  EXPECT_EQ(script.steps[0].source, 3);
  EXPECT_EQ(script.steps[1].kind, Step::Kind::kSendPacket);
  EXPECT_EQ(script.steps[1].destination, 3);
}

TEST(Script, PacketsHaveFieldsAndVariables) {
  const Script script = Good(std::string(kClientHead) +
                             "expect 4 to 0 DATASYNC tag=-1 srqid=?id data 1 2\nsend 0 to 3 SYNCACK srqid=$id "
                             "drqid=0xffffffffffffffff\nsend 5 to 3 99 len=7");
  ASSERT_EQ(script.steps.size(), 3u);
  const Step& expect = script.steps[0];
  EXPECT_EQ(expect.fields[0].number, 0xffffffffu);
  EXPECT_EQ(expect.fields[1].kind, Step::FieldValue::Kind::kIntoVariable);
  EXPECT_TRUE(expect.has_data);
  EXPECT_EQ(expect.values.size(), 8u);
  EXPECT_EQ(script.steps[1].fields[1].number, UINT64_MAX);
  EXPECT_EQ(script.steps[2].type, 99u);
  EXPECT_FALSE(script.steps[2].has_data);
}

TEST(Script, AnErrorNamesFileLineWordAndRemedy) {
  const std::string server = kServerHead, client = kClientHead;
  const std::pair<std::string, std::string> cases[] = {
      {"nonsense\n", "a.script:1: 'nonsense' is not known; lines begin with one of: clause, about"},
      {"clause\n", "a.script:1: 'clause': the form is: clause NUMBER"},
      {"clause two\n", "a.script:1: 'two' is not the number of a clause"},
      {"target both\n", "a.script:1: 'both' is not a target; it is server or client"},
      {"clients 33\n", "a.script:1: '33' is not a number of clients; a job has 1 to 32"},
      {"open a\n", "a.script:1: say before the first step what is tested"},
      {"target server\nopen a\n", "a.script:2: say before the first step how many clients"},
      {"target client\nclients 2\nexchange\n", "a.script:3: say before the first step which client is tested"},
      {server + "open a\nclients 3\n", "a.script:6: 'clients' stands before the first step"},
      {server + "open A\n", "a.script:5: 'A' is not a name of a connection"},
      {server + "accept a\n", "a.script:5: 'accept' is for scripts with 'target client'"},
      {server + "say a HELLO\n", "a.script:5: 'HELLO' is not a command; these are AUTH"},
      {server + "say a IMPI length=x\n", "a.script:5: 'length=x' is not a length of 32 bits"},
      {server + "say a IMPI any:4\n", "a.script:5: 'any:4' stands for bytes that come; it cannot be sent"},
      {server + "hear-words a rest\n", "a.script:5: 'rest' has no end here"},
      {server + "exits 256\n", "a.script:5: '256' is not an exit status"},
      {server + "authentication password\n", "a.script:5: 'password' is not a method"},
      {server + "patience 0\n", "a.script:5: '0' is not a number of seconds"},
      {server, "a.script:4: the script has no steps"},
      {"target server\nclients 1\nopen a\n", "a.script:3: the script does not say which clause it tests"},
      {client + "client 3 hosts 1\n", "a.script:7: '3' is not a client of this job, which has 3"},
      {client + "client 1 hosts 1\n", "a.script:7: client 1 is the one under test"},
      {client + "client 2 hosts 1+0\n", "a.script:7: '1+0' is not a list of ranks by host"},
      {client + "client 2 colour 1\n", "a.script:7: 'colour' is not a property of a client"},
      {client + "client 2 datalen 0\n", "a.script:7: '0' is not a value of datalen"},
      {client + "client 2 hosts 64\nexchange\n", "a.script:8: the job has 69 ranks; at most 64 are possible"},
      {client + "open host2\n", "a.script:7: 'host2' is not a connection of the client under test"},
      {client + "open server\n", "a.script:7: the client under test opens the connection 'server' itself"},
      {client + "send 3 to 0 DATA\n", "a.script:7: '3 to 0': rank 3 has to be played by the tester"},
      {client + "expect 0 to 3 DATA\n", "a.script:7: '0 to 3': rank 0 has to be of the client under test"},
      {client + "send 0 to 6 DATA\n", "a.script:7: '0 to 6': the job has the ranks 0 to 5"},
      {client + "send 0 to 3 LETTER\n", "a.script:7: 'LETTER' is not a type of packets"},
      {client + "send 0 to 3 DATA colour=1\n",
       "a.script:7: 'colour=1' is not FIELD=VALUE or data; the fields are type"},
      {client + "send 0 to 3 DATA tag=x\n", "a.script:7: 'tag=x': 'x' is not a number"},
      {client + "send 0 to 3 DATA srqid=?x\n", "a.script:7: 'srqid=?x': a packet that is sent has no value to keep"},
      {client + "expect 3 to 0 FINI\n", "a.script:7: FINI is of no process"},
      {client + "quiet 3 to 0 DATA\n", "a.script:7: 'quiet 3 to 0 DATA': the form is: quiet CONNECTION"},
      {client + "rank 0: barrier\n", "a.script:7: '0:' is not a rank of the client under test"},
      {client + "exchange twice\n", "a.script:7: 'twice': the form is: exchange"},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_TRUE(Error(text).starts_with(expected)) << Error(text) << "\nexpected: " << expected;
}

TEST(Script, IsBounded) {
  EXPECT_TRUE(Error(std::string(Script::kLongest + 1, '#')).starts_with("a.script:0: the file has 262145 bytes"));
  std::string text = std::string(kServerHead);
  for (int i = 0; i < 17; ++i) text += "words a zeros:1048576\n";
  EXPECT_TRUE(Error(text).starts_with("a.script:21: the values of all steps are longer than")) << Error(text);
}

TEST(Script, NamesOfHostConnections) {
  EXPECT_EQ(HostOfConnection("host12"), 12);
  for (const char* name : {"server", "host", "host01", "host-1", "host1x", "host999"})
    EXPECT_EQ(HostOfConnection(name), std::nullopt) << name;
}

}  // namespace
}  // namespace weft::impi::tester
