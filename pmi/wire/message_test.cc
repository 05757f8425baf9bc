#include "pmi/wire/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::pmi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::vector<Message> ReadAll(MessageReader& reader) {
  std::vector<Message> all;
  while (auto message = reader.Next()) all.push_back(*message);
  return all;
}

Message ReadOne(std::string_view bytes) {
  MessageReader reader;
  reader.Append(bytes);
  const auto all = ReadAll(reader);
  EXPECT_EQ(reader.error(), "");
  EXPECT_TRUE(reader.empty());
  EXPECT_EQ(all.size(), 1u) << bytes;
  return all.empty() ? Message{} : all[0];
}

std::string ErrorOf(std::string_view bytes) {
  MessageReader reader;
  reader.Append(bytes);
  ReadAll(reader);
  return reader.error();
}

// What Debian's MPICH 4.0.2 and its hydra say to each other.
TEST(PmiMessage, ReadsWhatHydraAnswers) {
  Message message = ReadOne("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
  EXPECT_EQ(message.command, "response_to_init");
  EXPECT_THAT(message.fields, ElementsAre(Pair("pmi_version", "1"), Pair("pmi_subversion", "1"), Pair("rc", "0")));

  message = ReadOne("cmd=get_result rc=-1 msg=key_foo_not_found value=unknown\n");
  EXPECT_EQ(message.FindInt("rc"), -1);
  EXPECT_EQ(*message.Find("msg"), "key_foo_not_found");

  message = ReadOne("cmd=get_result rc=0 msg=success value=(vector,(0,1,1))\n");
  EXPECT_EQ(*message.Find("value"), "(vector,(0,1,1))");
}

TEST(PmiMessage, ReadsTheFourLinesThatAnswerInitack) {
  MessageReader reader;
  reader.Append("cmd=initack\ncmd=set size=2\ncmd=set rank=1\ncmd=set debug=0\n");
  const auto all = ReadAll(reader);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].command, "initack");
  EXPECT_EQ(all[1].FindInt("size"), 2);
  EXPECT_EQ(all[2].FindInt("rank"), 1);
}

TEST(PmiMessage, ReadsSpawnInItsManyLines) {
  const Message message = ReadOne(
      "mcmd=spawn\nnprocs=2\nexecname=./a b\ntotspawns=1\nspawnssofar=1\narg1=-x=1 \nargcnt=1\npreput_num=1\n"
      "preput_key_0=PARENT\npreput_val_0=tag#0$port#1$\ninfo_num=0\nendcmd\n");
  EXPECT_EQ(message.command, "spawn");
  EXPECT_TRUE(message.multi_line);
  EXPECT_EQ(*message.Find("execname"), "./a b");
  EXPECT_EQ(*message.Find("arg1"), "-x=1 ");
  EXPECT_EQ(message.FindInt("nprocs"), 2);
}

TEST(PmiMessage, WritesWhatItReads) {
  for (const char* text :
       {"cmd=barrier_in\n", "cmd=put kvsname=kvs_1 key=a value=b=c\n", "mcmd=spawn\nnprocs=2\nexecname=a b\nendcmd\n"}) {
    EXPECT_EQ(ReadOne(text).Serialize(), text);
  }
}

TEST(PmiMessage, AValueMayHoldAnEqualsSign) { EXPECT_EQ(*ReadOne("cmd=put value=a=b==\n").Find("value"), "a=b=="); }

TEST(PmiMessage, BlanksBetweenWordsMayBeMany) {
  EXPECT_THAT(ReadOne("  cmd=x   a=1  b=2 \n").fields, ElementsAre(Pair("a", "1"), Pair("b", "2")));
}

TEST(PmiMessage, AWordWithoutNameBelongsToTheValueBefore) {
  const Message message = ReadOne("cmd=get_result rc=-1 msg=no such key value=x\n");
  EXPECT_EQ(*message.Find("msg"), "no such key");
  EXPECT_EQ(*message.Find("value"), "x");
}

TEST(PmiMessage, ComesTogetherFromEverySplit) {
  const std::string text = "cmd=a x=1\nmcmd=spawn\nn=1\nendcmd\ncmd=b\n";
  for (size_t split = 0; split <= text.size(); ++split) {
    MessageReader reader;
    reader.Append(text.substr(0, split));
    auto all = ReadAll(reader);
    reader.Append(text.substr(split));
    for (auto& message : ReadAll(reader)) all.push_back(message);
    ASSERT_EQ(all.size(), 3u) << split;
    EXPECT_EQ(all[1].FindInt("n"), 1);
    EXPECT_TRUE(reader.empty());
  }
}

TEST(PmiMessage, SaysWhetherSomethingIsHalfReceived) {
  MessageReader reader;
  EXPECT_TRUE(reader.empty());
  reader.Append("cmd=x");
  EXPECT_FALSE(reader.Next());
  EXPECT_FALSE(reader.empty());
  reader.Append("\nmcmd=spawn\n");
  EXPECT_TRUE(reader.Next());
  EXPECT_FALSE(reader.Next());
  EXPECT_FALSE(reader.empty());
}

TEST(PmiMessage, ALineOfTheLimitPassesAndOneMoreByteDoesNot) {
  const std::string head = "cmd=put value=";
  const std::string longest = head + std::string(MessageReader::kLongestLine - head.size(), 'x');
  EXPECT_EQ(ReadOne(longest + "\n").Find("value")->size(), MessageReader::kLongestLine - head.size());
  EXPECT_THAT(ErrorOf(longest + "x\n"), HasSubstr("16384 bytes"));
  EXPECT_THAT(ErrorOf(longest + "x"), HasSubstr("16384 bytes")) << "no need to wait for its end";
}

TEST(PmiMessage, RefusesMultiLineMessagesWithoutEnd) {
  std::string text = "mcmd=spawn\n";
  for (size_t i = 0; i <= MessageReader::kMostFields; ++i) text += "a=b\n";
  EXPECT_THAT(ErrorOf(text), HasSubstr("more than 4096 fields"));
}

TEST(PmiMessage, RefusesWhatIsNoMessageAndNamesIt) {
  EXPECT_THAT(ErrorOf("GET / HTTP/1.1\n"), HasSubstr("GET / HTTP/1.1"));
  EXPECT_THAT(ErrorOf("a=b\n"), HasSubstr("a=b"));
  EXPECT_THAT(ErrorOf("cmd=x stray\n"), HasSubstr("stray"));
  EXPECT_THAT(ErrorOf("mcmd=spawn\nstray\nendcmd\n"), HasSubstr("stray"));
  EXPECT_THAT(ErrorOf(std::string("cmd=x a=\0\n", 10)), HasSubstr("control"));
  EXPECT_THAT(ErrorOf("cmd=x\r\n"), HasSubstr("control"));
}

TEST(PmiMessage, NothingFollowsAnError) {
  MessageReader reader;
  reader.Append("nonsense\ncmd=x\n");
  EXPECT_FALSE(reader.Next());
  EXPECT_FALSE(reader.Next());
  reader.Append("cmd=y\n");
  EXPECT_FALSE(reader.Next());
}

TEST(PmiMessage, ASentenceIsOneValue) {
  for (const char* text : {"", "no blank", "window_1 is 100% full, a=b", "%20", "%2", "%", " "}) {
    EXPECT_EQ(EscapeBlanks(text).find(' '), std::string::npos) << text;
    EXPECT_EQ(UnescapeBlanks(EscapeBlanks(text)), text);
  }
  EXPECT_EQ(UnescapeBlanks("%41 as it came"), "%41 as it came");
}

TEST(PmiMessage, ListsOfNumbersKeepTheirMeaning) {
  for (const std::vector<int>& numbers : {std::vector<int>{}, {0}, {7, 1234567, 0}}) EXPECT_EQ(ParseNumberList(NumberList(numbers), 3), numbers);
  EXPECT_EQ(ParseNumberList("1,2,3,4", 3), std::nullopt);
  for (const char* bad : {"1,", ",", "a", "1 2", "-1", "2147483648"}) EXPECT_EQ(ParseNumberList(bad, 3), std::nullopt) << bad;
}

TEST(PmiMessage, NumbersAreWholeAndFit) {
  const Message message = ReadOne("cmd=x a=12 b=12x c= d=99999999999 e=-3\n");
  EXPECT_EQ(message.FindInt("a"), 12);
  EXPECT_EQ(message.FindInt("e"), -3);
  for (const char* name : {"b", "c", "d", "missing"}) EXPECT_EQ(message.FindInt(name), std::nullopt) << name;
}

}  // namespace
}  // namespace weft::pmi
