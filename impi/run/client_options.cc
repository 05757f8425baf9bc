#include "impi/run/client_options.h"

#include <algorithm>
#include <array>
#include <climits>
#include <utility>

#include "base/host_port.h"
#include "impi/job/job.h"

namespace weft::impi {
namespace {

constexpr uint32_t kMostDataLength = 16 << 20;  // bytes: an agent keeps a packet of each connection in memory
constexpr uint32_t kMostPackets = 65536;        // ACKMARK, HIWATER

struct Parser {
  ClientOptions options;
  std::vector<int> methods;  // -auth

  // Each takes a value. What is wrong with it, or "".
  std::string Auth(const std::string& value) {
    auto list = ParseAuthList(value);
    if (!list.ok()) return list.error();
    methods = std::move(list).value();
    return {};
  }
  std::string Address(const std::string& value) {
    for (size_t at = 0; at <= value.size();) {
      const size_t comma = std::min(value.find(',', at), value.size());
      if (comma == at) return "-address '" + value + "': not an address of this host, or one of each host, separated by commas";
      options.addresses.push_back(value.substr(at, comma - at));
      at = comma + 1;
    }
    return {};
  }
  std::string Peer(const std::string& value) {
    options.lam_peers = value == "lam";
    return options.lam_peers ? "" : "-impi-peer '" + value + "': only lam is known; without this option, the other clients do as the specification says";
  }
  std::string DataLength(const std::string& value) { return Number("-datalen", value, 1, kMostDataLength, "bytes", &options.data_length); }
  std::string AckMark(const std::string& value) { return Number("-ackmark", value, 1, kMostPackets, "packets", &options.ack_mark); }
  std::string HighWater(const std::string& value) { return Number("-hiwater", value, 1, kMostPackets, "packets", &options.high_water); }
  std::string CrossoverSize(const std::string& value) { return Choice("-xsize", value, "bytes", &options.crossover_size); }
  std::string MaxLinear(const std::string& value) { return Choice("-maxlinear", value, "hosts", &options.max_linear); }

  static std::string Number(const std::string& name, const std::string& value, uint32_t least, uint32_t most, const std::string& unit, uint32_t* into) {
    const auto number = NumberUpTo(value, most);
    if (!number || *number < least) {
      return name + " '" + value + "': not a number of " + unit + "; " + std::to_string(least) + " to " + std::to_string(most) + " are possible";
    }
    *into = *number;
    return {};
  }
  static std::string Choice(const std::string& name, const std::string& value, const std::string& unit, int32_t* into) {
    uint32_t number = 0;
    std::string problem = Number(name, value, 0, INT32_MAX, unit, &number);
    if (problem.empty()) *into = static_cast<int32_t>(number);
    return problem;
  }
};

struct Option {
  const char* name;
  const char* value;
  const char* help;
  std::string (Parser::*take)(const std::string& value);
};

constexpr std::array<Option, 8> kOptions{{
    {"-auth", "LIST", "which of the available methods this client offers (default: all)", &Parser::Auth},
    {"-address", "ADDRESS[,...]", "address of each host that other clients connect to (default: the one from which it reaches the server)", &Parser::Address},
    {"-impi-peer", "lam", "all other clients are LAM/MPI 7.1.4, which departs from the specification", &Parser::Peer},
    {"-datalen", "BYTES", "most bytes of user data in a packet; the least value of all clients counts (default: 65536)", &Parser::DataLength},
    {"-ackmark", "PACKETS", "packets of a pair of processes until an acknowledgement; the least value counts (default: 10)", &Parser::AckMark},
    {"-hiwater", "PACKETS", "packets of a pair of processes without acknowledgement; the least value counts (default: 40)", &Parser::HighWater},
    {"-xsize", "BYTES", "from which on collective operations use long protocols; the same at all clients (default: 1024)", &Parser::CrossoverSize},
    {"-maxlinear", "HOSTS", "from which on collective operations are logarithmic; the same at all clients (default: 4)", &Parser::MaxLinear},
}};

const Option* Find(const std::string& word) {
  for (const Option& option : kOptions) {
    if (word == option.name || word == std::string("-") + option.name) return &option;
  }
  return nullptr;
}

}  // namespace

Result<ClientOptions, std::string> ParseClientOptions(const std::vector<std::string>& words, const EnvironmentReader& get) {
  static const std::string kForm = "impirun -client K HOST:PORT -n RANKS PROGRAM";
  Parser parser;
  ClientOptions& options = parser.options;
  if (words.size() < 3) return "-client needs the number of this client, and the address that impirun -server printed: " + kForm;
  const auto client = NumberUpTo(words[1], Job::kMostClients - 1);
  if (!client) return "-client '" + words[1] + "': not the number of a client; a job with N clients has the clients 0 to N - 1, and N is at most 32";
  options.client = static_cast<int32_t>(*client);
  const auto server = ParseHostPort(words[2]);
  if (!server) return "'" + words[2] + "' is not the HOST:PORT of a server; take it from the output of impirun -server";
  options.host = server->host;
  options.port = server->port;
  size_t at = 3;
  while (at < words.size()) {
    const Option* option = Find(words[at]);
    if (option == nullptr) break;
    if (at + 1 == words.size()) return std::string(option->name) + " needs " + option->value;
    if (std::string problem = (parser.*option->take)(words[at + 1]); !problem.empty()) return problem;
    at += 2;
  }
  if (at == words.size()) return "no program given; the form is " + kForm;
  options.mpiexec.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
  if (options.ack_mark > options.high_water) {
    return "-ackmark " + std::to_string(options.ack_mark) + " is above -hiwater " + std::to_string(options.high_water) +
           ": an acknowledgement would never be due";
  }
  if (options.high_water < 2 * options.ack_mark) {
    options.warnings.push_back("-hiwater " + std::to_string(options.high_water) + " is less than twice -ackmark " + std::to_string(options.ack_mark) +
                               ": two processes that send each other long messages and then short ones can wait for each other for ever");
  }
  auto authentication = AvailableAuthentication(parser.methods, get, "set IMPI_AUTH_KEY to the number that the server has, or IMPI_AUTH_NONE if the server accepts everybody");
  if (!authentication.ok()) return authentication.error();
  options.authentication = std::move(authentication).value();
  return std::move(options);
}

std::string HelpOfImpirun() {
  std::string text =
      "usage: impirun -server N [-port P] [-auth LIST]\n"
      "       impirun -client K HOST:PORT [OPTIONS] [MPIEXEC'S OPTIONS] -n RANKS PROGRAM [ARGUMENTS...]\n\n"
      "Runs one MPI job across several MPI implementations, with the protocol IMPI 0.0. The server prints HOST:PORT as its first line, and\n"
      "ends when the job does. Each of the N clients, numbered from 0, starts its own ranks; MPI_COMM_WORLD has the ranks of all of them.\n\n"
      "  -server N\n        the number of clients that the job has, 1 to 32\n"
      "  -port P\n        TCP port of the server (default: any that is free)\n"
      "  -auth LIST\n        of the server: methods of authentication, the preferred one first: 1 is the key, 0 is none (default: 1,0)\n\n"
      "Options of a client, which stand before those of mpiexec:\n\n";
  for (const Option& option : kOptions) text += std::string("  ") + option.name + " " + option.value + "\n        " + option.help + "\n";
  return text +
         "\nThe ranks of a client run on this host, or on those that -hosts, -f or a batch system names. mpiexec -help lists mpiexec's options.\n\n"
         "Environment of server and clients:\n\n"
         "  IMPI_AUTH_KEY\n        a number of 64 bits that they share, such as 0x1234567890abcdef\n"
         "  IMPI_AUTH_NONE\n        with any value: consent to no authentication; anybody who reaches the server can then join the job\n\n"
         "Exit status of a client: that of mpiexec; 1 if the job failed; 2 for a wrong command line.\n";
}

}  // namespace weft::impi
