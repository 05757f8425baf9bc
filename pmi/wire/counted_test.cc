#include "pmi/wire/counted.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::pmi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::vector<Message> ReadAll(CountedReader& reader) {
  std::vector<Message> all;
  while (auto message = reader.Next()) all.push_back(*message);
  return all;
}

Message ReadOne(std::string_view bytes) {
  CountedReader reader;
  reader.Append(bytes);
  const auto all = ReadAll(reader);
  EXPECT_EQ(reader.error(), "");
  EXPECT_EQ(all.size(), 1u) << bytes;
  return all.empty() ? Message{} : all[0];
}

std::string ErrorOf(std::string_view bytes) {
  CountedReader reader;
  reader.Append(bytes);
  ReadAll(reader);
  return reader.error();
}

std::string Part(const std::string& text) {
  const std::string length = std::to_string(text.size());
  return std::string(6 - length.size(), ' ') + length + text;
}

TEST(PmiCounted, LengthMayStandLeftOrRight) {
  for (const char* bytes : {"    14cmd=kvs-fence;", "14    cmd=kvs-fence;", "000014cmd=kvs-fence;", "  14  cmd=kvs-fence;"}) {
    EXPECT_EQ(ReadOne(bytes).command, "kvs-fence") << bytes;
  }
}

TEST(PmiCounted, ValuesMayHoldAnything) {
  const std::string value("a=b c\n\0;;d;", 11);
  const std::string bytes = SerializeCounted(Message{"kvs-put"}.Add("key", "k").Add("value", value).Add("empty", ""));
  EXPECT_EQ(bytes, Part(std::string("cmd=kvs-put;key=k;value=a=b c\n\0;;;;d;;;empty=;", 46)));
  EXPECT_THAT(ReadOne(bytes).fields, ElementsAre(Pair("key", "k"), Pair("value", value), Pair("empty", "")));
}

TEST(PmiCounted, ReadsTheSameWhereverTheStreamIsCut) {
  const std::string bytes = Part("cmd=kvs-get;key=a;;b;") + Part("cmd=finalize;");
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    CountedReader reader;
    reader.Append(std::string_view(bytes).substr(0, cut));
    auto all = ReadAll(reader);
    reader.Append(std::string_view(bytes).substr(cut));
    for (auto& message : ReadAll(reader)) all.push_back(message);
    ASSERT_EQ(all.size(), 2u) << cut;
    EXPECT_EQ(*all[0].Find("key"), "a;b");
    EXPECT_EQ(all[1].command, "finalize");
  }
}

TEST(PmiCounted, ContinuationsGoOnByTheirId) {
  CountedReader reader;
  reader.Append(Part("cmd=spawn;a=1;concat=x;") + Part("cmd=spawn;a=9;concat=y;") + Part("cmd=kvs-fence;") +
                Part("cmd=concat;concatid=x;b=2;concat=x;") + Part("cmd=concat;concatid=x;c=3;") + Part("cmd=concat;concatid=y;"));
  const auto all = ReadAll(reader);
  EXPECT_EQ(reader.error(), "");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].command, "kvs-fence");
  EXPECT_THAT(all[1].fields, ElementsAre(Pair("a", "1"), Pair("b", "2"), Pair("c", "3")));
  EXPECT_THAT(all[2].fields, ElementsAre(Pair("a", "9")));
}

TEST(PmiCounted, WhatIsTooLongForOneMessageIsContinued) {
  Message message{"spawn"};
  for (int i = 0; i < 30; ++i) message.Add("argv" + std::to_string(i), std::string(100000, 'x'));
  const std::string bytes = SerializeCounted(message);
  EXPECT_THAT(bytes, HasSubstr("concat=1;"));
  EXPECT_EQ(ReadOne(bytes).fields, message.fields);
}

TEST(PmiCounted, NamesWhatIsWrong) {
  EXPECT_THAT(ErrorOf("cmd=init pmi_version=2"), HasSubstr("'cmd=in' instead of the length of a message"));
  EXPECT_THAT(ErrorOf("      "), HasSubstr("'      ' instead of the length"));
  EXPECT_THAT(ErrorOf("1 2   "), HasSubstr("'1 2   ' instead of the length"));
  EXPECT_THAT(ErrorOf("-00001"), HasSubstr("'-00001' instead of the length"));
  EXPECT_THAT(ErrorOf("000000"), HasSubstr("a message of 0 bytes"));
  EXPECT_THAT(ErrorOf(Part("hello")), HasSubstr("no key=value; in 'hello'"));
  EXPECT_THAT(ErrorOf(Part("key=a;")), HasSubstr("does not begin with cmd=NAME; but is 'key=a;'"));
  EXPECT_THAT(ErrorOf(Part("cmd=;")), HasSubstr("does not begin with cmd=NAME;"));
  EXPECT_THAT(ErrorOf(Part("cmd=a b;")), HasSubstr("does not begin with cmd=NAME;"));
  EXPECT_THAT(ErrorOf(Part("cmd=x;a=b")), HasSubstr("no semicolon behind the value of a"));
  EXPECT_THAT(ErrorOf(Part("cmd=x;a=b;;")), HasSubstr("no semicolon behind the value of a"));
  EXPECT_THAT(ErrorOf(Part("cmd=x;a b=c;")), HasSubstr("no key=value; in 'a b=c;'"));
  EXPECT_THAT(ErrorOf(Part("cmd=x;" + std::string(65, 'k') + "=c;")), HasSubstr("no key=value;"));
  EXPECT_EQ(ErrorOf(Part("cmd=x;" + std::string(64, 'k') + "=c;")), "");
  EXPECT_THAT(ErrorOf(Part("cmd=concat;")), HasSubstr("cmd=concat without the id of the message"));
  EXPECT_THAT(ErrorOf(Part("cmd=concat;concatid=7;")), HasSubstr("concatid=7, which nothing before it announced"));
  EXPECT_THAT(ErrorOf(Part("cmd=x;concat=7;") + Part("cmd=x;concat=7;")), HasSubstr("concat=7 twice"));
}

TEST(PmiCounted, NothingGrowsWithoutBound) {
  std::string many;
  for (int i = 0; i < 17; ++i) many += Part("cmd=x;concat=" + std::to_string(i) + ";");
  EXPECT_THAT(ErrorOf(many), HasSubstr("more than 16 unfinished messages"));

  std::string longer = Part("cmd=x;a=" + std::string(900000, 'x') + ";concat=1;");
  for (int i = 0; i < 5; ++i) longer += Part("cmd=concat;concatid=1;a=" + std::string(900000, 'x') + ";concat=1;");
  EXPECT_THAT(ErrorOf(longer), HasSubstr("cmd=x of more than 4194304 bytes"));

  std::string fields = "cmd=x;";
  for (int i = 0; i < 65537; ++i) fields += "a=b;";
  EXPECT_THAT(ErrorOf(Part(fields)), HasSubstr("cmd=x with more than 65536 fields"));
}

TEST(PmiCounted, NothingFollowsAnError) {
  CountedReader reader;
  reader.Append("nonsense");
  EXPECT_FALSE(reader.Next());
  reader.Append(Part("cmd=kvs-fence;"));
  EXPECT_FALSE(reader.Next());
}

}  // namespace
}  // namespace weft::pmi
