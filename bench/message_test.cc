#include "bench/message.h"

#include <gtest/gtest.h>

namespace weft::bench {
namespace {

TEST(MessageTest, ComesBackAsItWasSent) {
  const Message sent = Message("run").Set("bytes", int64_t{1} << 40).Set("seconds", 0.1).Set("text", "two words");
  const Message received = Message::Parse(sent.ToString());
  EXPECT_EQ(received.verb(), "run");
  EXPECT_EQ(received.Integer("bytes"), int64_t{1} << 40);
  EXPECT_EQ(received.Real("seconds"), 0.1);
  EXPECT_EQ(received.Text("text"), "two words");
}

TEST(MessageTest, AVerbAloneIsAMessage) { EXPECT_EQ(Message::Parse("close").verb(), "close"); }

TEST(MessageTest, ValuesMayHoldAnEqualsSignButNoLineBreak) {
  EXPECT_EQ(Message::Parse(Message("error").Set("text", "a=b\nc").ToString()).Text("text"), "a=b c");
}

TEST(MessageTest, RefusesWhatIsMissingOrMisshapen) {
  const Message message = Message::Parse("run\nbytes=64k");
  EXPECT_THROW(message.Integer("bytes"), Failure);
  EXPECT_THROW(message.Real("bytes"), Failure);
  EXPECT_THROW(message.Text("count"), Failure);
  EXPECT_THROW(Message::Parse("run\nbytes"), Failure);
}

}  // namespace
}  // namespace weft::bench
