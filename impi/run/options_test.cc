#include "impi/run/options.h"

#include <gtest/gtest.h>

#include <map>

namespace weft::impi {
namespace {

class ServerOptionsTest : public ::testing::Test {
 protected:
  Result<ServerOptions, std::string> Parse(const std::vector<std::string>& words) {
    return ParseServerOptions(words, [this](const char* name) {
      const auto found = environment.find(name);
      return found == environment.end() ? nullptr : found->second.c_str();
    });
  }
  std::string Why(const std::vector<std::string>& words) {
    const auto options = Parse(words);
    return options.ok() ? "" : options.error();
  }
  std::map<std::string, std::string> environment{{"IMPI_AUTH_KEY", "5678"}};
};

using enum AuthMethod;

TEST_F(ServerOptionsTest, HasTheClientsAndTheKey) {
  const auto options = Parse({"-server", "2"});
  ASSERT_TRUE(options.ok()) << options.error();
  EXPECT_EQ(*options, (ServerOptions{.clients = 2, .port = 0, .authentication = {{kKey}, 5678}}));
  environment = {{"IMPI_AUTH_KEY", "0xffffffffffffffff"}, {"IMPI_AUTH_NONE", ""}};
  EXPECT_EQ(*Parse({"-server", "32", "-port", "9000"}), (ServerOptions{.clients = 32, .port = 9000, .authentication = {{kKey, kNone}, ~uint64_t{0}}}));
}

TEST_F(ServerOptionsTest, PrefersMethodsAsTheListSays) {
  environment["IMPI_AUTH_NONE"] = "1";
  const auto methods = [&](const char* list) { return Parse({"-server", "1", "-auth", list})->authentication.methods; };
  EXPECT_EQ(methods("3,1-0"), (std::vector{kKey, kNone}));
  EXPECT_EQ(methods("0-31"), (std::vector{kNone, kKey}));
  EXPECT_EQ(methods("0,1,0"), (std::vector{kNone, kKey}));
  EXPECT_EQ(methods("1"), std::vector{kKey});
}

TEST_F(ServerOptionsTest, NeedsAMethodThatIsAvailable) {
  const std::string none =
      "no authentication method is available: set IMPI_AUTH_KEY to a number that server and clients share, or IMPI_AUTH_NONE to let anybody in";
  EXPECT_EQ(Why({"-server", "2", "-auth", "0"}), none);
  environment = {};
  EXPECT_EQ(Why({"-server", "2"}), none);
  environment = {{"IMPI_AUTH_KEY", "secret"}};
  EXPECT_EQ(Why({"-server", "2"}), "IMPI_AUTH_KEY is not a number of 64 bits");
  environment = {{"IMPI_AUTH_KEY", "18446744073709551616"}};
  EXPECT_EQ(Why({"-server", "2"}), "IMPI_AUTH_KEY is not a number of 64 bits");
}

TEST_F(ServerOptionsTest, WrongWordsAreNamed) {
  EXPECT_EQ(Why({}), "-server N: how many clients the job has");
  for (const char* clients : {"0", "33", "-1", "two", "", "2x"}) {
    EXPECT_EQ(Why({"-server", clients}), "-server '" + std::string(clients) + "': not a number of clients; a job has 1 to 32");
  }
  EXPECT_EQ(Why({"-server"}), "-server needs a value");
  EXPECT_EQ(Why({"-server", "2", "-port", "65536"}), "-port '65536': not a port; those are 0 (any) to 65535");
  for (const char* list : {"", ",", "1,", "32", "1--0", "x"}) {
    EXPECT_EQ(Why({"-server", "2", "-auth", list}),
              "-auth '" + std::string(list) + "': not a list of methods; for example 1,0 or 1-0: the key (1) before none (0)");
  }
  EXPECT_EQ(Why({"-server", "2", "-key", "3"}), "unknown option '-key'; -server, -port and -auth are known");
}

}  // namespace
}  // namespace weft::impi
