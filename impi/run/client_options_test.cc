#include "impi/run/client_options.h"

#include <gtest/gtest.h>

#include <map>

namespace weft::impi {
namespace {

using Words = std::vector<std::string>;
using enum AuthMethod;

class ClientOptionsTest : public ::testing::Test {
 protected:
  Result<ClientOptions, std::string> Parse(const Words& words) {
    return ParseClientOptions(words, [this](const char* name) {
      const auto found = environment.find(name);
      return found == environment.end() ? nullptr : found->second.c_str();
    });
  }
  std::string Why(const Words& words) {
    const auto options = Parse(words);
    return options.ok() ? "" : options.error();
  }
  std::string WhyNot(const Words& option) {
    Words words{"-client", "0", "host:1"};
    words.insert(words.end(), option.begin(), option.end());
    words.insert(words.end(), {"-n", "2", "a.out"});
    return Why(words);
  }
  std::map<std::string, std::string> environment{{"IMPI_AUTH_KEY", "5678"}};
};

TEST_F(ClientOptionsTest, AnAddressForEachHost) {
  const auto options = Parse({"-client", "0", "host:1", "-address", "192.0.2.1,2001:db8::1", "-hosts", "a,b", "-n", "2", "x"});
  ASSERT_TRUE(options.ok()) << options.error();
  EXPECT_EQ(options->addresses, (Words{"192.0.2.1", "2001:db8::1"}));
  for (const char* list : {"", ",", "192.0.2.1,", ",192.0.2.1", "192.0.2.1,,192.0.2.2"}) {
    EXPECT_EQ(WhyNot({"-address", list}), std::string("-address '") + list + "': not an address of this host, or one of each host, separated by commas");
  }
}

TEST_F(ClientOptionsTest, TheFormOfTheSpecification) {
  const auto options = Parse({"-client", "1", "128.162.19.8:5678", "-np", "4", "b.out", "-client", "x"});
  ASSERT_TRUE(options.ok()) << options.error();
  ClientOptions expected;
  expected.client = 1;
  expected.host = "128.162.19.8";
  expected.port = 5678;
  expected.authentication = {{kKey}, 5678};
  expected.mpiexec = {"-np", "4", "b.out", "-client", "x"};
  EXPECT_EQ(*options, expected);
}

TEST_F(ClientOptionsTest, ItsOwnOptionsStandBeforeThoseOfMpiexec) {
  environment["IMPI_AUTH_NONE"] = "";
  const auto options = Parse({"-client", "31", "[fd00::1]:9", "-auth", "0", "-address", "192.0.2.1", "-impi-peer", "lam", "--datalen", "1000", "-ackmark", "3", "-hiwater",
                              "6", "-xsize", "0", "-maxlinear", "2147483647", "-l", "-n", "2", "a.out", "-xsize", "9"});
  ASSERT_TRUE(options.ok()) << options.error();
  EXPECT_EQ(options->client, 31);
  EXPECT_EQ(options->host, "fd00::1");
  EXPECT_EQ(options->authentication.methods, std::vector{kNone});
  EXPECT_EQ(options->addresses, std::vector<std::string>{"192.0.2.1"});
  EXPECT_TRUE(options->lam_peers);
  EXPECT_EQ(options->data_length, 1000u);
  EXPECT_EQ(options->ack_mark, 3u);
  EXPECT_EQ(options->high_water, 6u);
  EXPECT_EQ(options->crossover_size, 0);
  EXPECT_EQ(options->max_linear, INT32_MAX);
  EXPECT_EQ(options->mpiexec, (Words{"-l", "-n", "2", "a.out", "-xsize", "9"}));
  EXPECT_TRUE(options->warnings.empty());
}

TEST_F(ClientOptionsTest, AHighWaterBelowTwiceTheAckMarkIsAWarning) {
  const auto options = Parse({"-client", "0", "h:1", "-ackmark", "3", "-hiwater", "5", "a.out"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->warnings, (Words{"-hiwater 5 is less than twice -ackmark 3: two processes that send each other long messages and then short ones can wait for "
                                      "each other for ever"}));
  EXPECT_EQ(WhyNot({"-ackmark", "6", "-hiwater", "5"}), "-ackmark 6 is above -hiwater 5: an acknowledgement would never be due");
}

TEST_F(ClientOptionsTest, WrongWordsAreNamed) {
  for (const Words& words : {Words{"-client"}, Words{"-client", "0"}}) {
    EXPECT_EQ(Why(words), "-client needs the number of this client, and the address that impirun -server printed: impirun -client K HOST:PORT -n RANKS PROGRAM");
  }
  for (const char* client : {"32", "-1", "", "x"}) {
    EXPECT_EQ(Why({"-client", client, "h:1", "a.out"}),
              "-client '" + std::string(client) + "': not the number of a client; a job with N clients has the clients 0 to N - 1, and N is at most 32");
  }
  for (const char* server : {"h", "h:", ":1", "h:0", "h:65536", ""}) {
    EXPECT_EQ(Why({"-client", "0", server, "a.out"}), "'" + std::string(server) + "' is not the HOST:PORT of a server; take it from the output of impirun -server");
  }
  EXPECT_EQ(Why({"-client", "0", "h:1"}), "no program given; the form is impirun -client K HOST:PORT -n RANKS PROGRAM");
  EXPECT_EQ(Why({"-client", "0", "h:1", "-datalen"}), "-datalen needs BYTES");
  EXPECT_EQ(WhyNot({"-datalen", "0"}), "-datalen '0': not a number of bytes; 1 to 16777216 are possible");
  EXPECT_EQ(WhyNot({"-hiwater", "65537"}), "-hiwater '65537': not a number of packets; 1 to 65536 are possible");
  EXPECT_EQ(WhyNot({"-xsize", "2147483648"}), "-xsize '2147483648': not a number of bytes; 0 to 2147483647 are possible");
  EXPECT_EQ(WhyNot({"-impi-peer", "mpich"}),
            "-impi-peer 'mpich': only lam is known; without this option, the other clients do as the specification says");
  EXPECT_EQ(WhyNot({"-auth", "x"}), "-auth 'x': not a list of methods; for example 1,0 or 1-0: the key (1) before none (0)");
  EXPECT_EQ(WhyNot({"-auth", "0"}),
            "no authentication method is available: set IMPI_AUTH_KEY to the number that the server has, or IMPI_AUTH_NONE if the server accepts everybody");
}

TEST_F(ClientOptionsTest, TheHelpHasAllOptions) {
  for (const char* option : {"-server", "-client", "-auth", "-address", "-impi-peer", "-datalen", "-ackmark", "-hiwater", "-xsize", "-maxlinear"}) {
    EXPECT_NE(HelpOfImpirun().find(std::string(" ") + option), std::string::npos) << option;
  }
}

}  // namespace
}  // namespace weft::impi
