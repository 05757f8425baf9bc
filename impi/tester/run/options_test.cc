#include "impi/tester/run/options.h"

#include <gtest/gtest.h>

namespace weft::impi::tester {
namespace {

using Words = std::vector<std::string>;

TEST(Options, OfBothTargets) {
  const auto server =
      ParseOptions({"server", "-patience", "3", "a.script", "--trace", "folder", "--", "impirun", "-v"});
  ASSERT_TRUE(server.ok()) << server.error();
  EXPECT_EQ(server->target, Target::kServer);
  EXPECT_EQ(server->scripts, (Words{"a.script", "folder"}));
  EXPECT_EQ(server->subject.command, (Words{"impirun", "-v"}));
  EXPECT_EQ(server->subject.patience, std::chrono::seconds(3));
  EXPECT_TRUE(server->traces);
  const auto client = ParseOptions({"client", "--address", "192.0.2.1,::1", "folder"});
  ASSERT_TRUE(client.ok()) << client.error();
  EXPECT_EQ(client->subject.addresses, (std::vector<std::string>{"192.0.2.1", "::1"}));
  EXPECT_TRUE(client->subject.command.empty());
  EXPECT_TRUE(ParseOptions({"server", "-at", "192.0.2.1:5", "a.script"}).ok());
}

TEST(Options, AWrongWordIsNamed) {
  const std::pair<Words, std::string> cases[] = {
      {{}, "say first what is tested: server or client"},
      {{"agent"}, "say first what is tested"},
      {{"server"}, "no script given"},
      {{"server", "a.script"}, "give either a command"},
      {{"server", "a.script", "--"}, "after -- the command has to follow"},
      {{"server", "-at", "192.0.2.1:5", "a.script", "--", "x"}, "give either a command"},
      {{"server", "-at", "nowhere", "a.script"}, "-at 'nowhere': not the address and port of a server"},
      {{"client", "-at", "192.0.2.1:5", "a.script"}, "-at is for a server under test"},
      {{"client", "-address", "foo", "a.script"}, "-address 'foo': not numeric addresses"},
      {{"client", "-address", "192.0.2.1,", "a.script"}, "-address '192.0.2.1,': not numeric addresses"},
      {{"client", "-patience", "0", "a.script"}, "-patience '0': not a number of seconds"},
      {{"client", "-serve", "70000", "a.script"}, "-serve '70000': not a port"},
      {{"client", "-serve", "0", "a.script"}, "-serve needs a command"},
      {{"client", "a.script", "-patience"}, "-patience needs SECONDS"},
      {{"client", "-colour", "a.script"}, "unknown option '-colour'"},
  };
  for (const auto& [words, text] : cases) {
    const auto options = ParseOptions(words);
    ASSERT_FALSE(options.ok()) << text;
    EXPECT_TRUE(options.error().starts_with(text)) << options.error();
  }
}

TEST(Options, HelpNamesThem) {
  for (const char* name : {"-at", "-address", "-patience", "-trace", "-serve", "{server}"})
    EXPECT_NE(Help().find(name), std::string::npos);
}

}  // namespace
}  // namespace weft::impi::tester
