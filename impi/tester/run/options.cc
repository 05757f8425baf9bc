#include "impi/tester/run/options.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/host_port.h"
#include "impi/tester/numbers.h"
#include "transport/socket_address.h"

namespace weft::impi::tester {
namespace {

constexpr uint64_t kMostPatience = 3600;  // seconds

struct Parser {
  Options options;

  // Each takes a value. What is wrong with it, or "".
  std::string At(const std::string& value) {
    options.subject.server = value;
    const auto parsed = ParseHostPort(value);
    const bool good = parsed && transport::SocketAddress::Parse(parsed->host, parsed->port);
    return good ? "" : "-at '" + value + "': not the address and port of a server, such as 192.0.2.1:5678";
  }
  std::string Address(const std::string& value) {
    options.subject.addresses.clear();
    for (size_t at = 0; at <= value.size();) {
      const size_t comma = std::min(value.find(',', at), value.size());
      options.subject.addresses.push_back(value.substr(at, comma - at));
      if (!transport::SocketAddress::Parse(options.subject.addresses.back(), 0)) {
        return "-address '" + value + "': not numeric addresses of this host, with a comma between each two";
      }
      at = comma + 1;
    }
    return {};
  }
  std::string Serve(const std::string& value) {
    const auto port = ParseUpTo(value, UINT16_MAX);
    if (!port) return "-serve '" + value + "': not a port; those are 0 (any) to 65535";
    options.page = static_cast<uint16_t>(*port);
    return {};
  }
  std::string Patience(const std::string& value) {
    const auto seconds = ParseUpTo(value, kMostPatience);
    if (!seconds || *seconds == 0) return "-patience '" + value + "': not a number of seconds; 1 to 3600 are possible";
    options.subject.patience = std::chrono::seconds(*seconds);
    return {};
  }
};

struct Option {
  const char* name;
  const char* value;
  const char* help;
  std::string (Parser::*take)(const std::string& value);
};

constexpr std::array<Option, 4> kOptions{{
    {"-at", "HOST:PORT", "a server that runs already, instead of COMMAND; it serves one job, so give one script",
     &Parser::At},
    {"-address", "ADDRESS,...",
     "addresses of this host at which the client under test finds the tester; the server has the first one, and the hosts "
     "that the tester plays have them in turn (default: 127.0.0.1)",
     &Parser::Address},
    {"-patience", "SECONDS", "limit of each step, where the script has none of its own (default: 10)",
     &Parser::Patience},
    {"-serve", "PORT",
     "show the scripts as a page at 127.0.0.1, whose address is printed; its button starts them (0: any port)",
     &Parser::Serve},
}};

const Option* Find(const std::string& word) {
  for (const Option& option : kOptions) {
    if (word == option.name || word == std::string("-") + option.name) return &option;
  }
  return nullptr;
}

}  // namespace

Result<Options, std::string> ParseOptions(const std::vector<std::string>& words) {
  Parser parser;
  Options& options = parser.options;
  if (words.empty() || (words[0] != "server" && words[0] != "client"))
    return std::string("say first what is tested: server or client; -help explains");
  options.target = words[0] == "server" ? Target::kServer : Target::kClient;
  size_t at = 1;
  for (; at < words.size() && words[at] != "--"; ++at) {
    const std::string& word = words[at];
    if (word == "-trace" || word == "--trace") {
      options.traces = true;
      continue;
    }
    if (!word.starts_with('-')) {
      options.scripts.push_back(word);
      continue;
    }
    const Option* option = Find(word);
    if (option == nullptr) return "unknown option '" + word + "'; -help lists them";
    if (++at == words.size()) return std::string(option->name) + " needs " + option->value;
    if (std::string problem = (parser.*option->take)(words[at]); !problem.empty()) return problem;
  }
  if (at < words.size())
    options.subject.command.assign(words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end());
  if (at < words.size() && options.subject.command.empty())
    return std::string("after -- the command has to follow that starts the implementation under test");
  if (options.scripts.empty()) return std::string("no script given; name files or folders");
  const bool is_server = options.target == Target::kServer;
  if (!is_server && !options.subject.server.empty()) return std::string("-at is for a server under test");
  if (is_server && options.subject.command.empty() == options.subject.server.empty()) {
    return std::string("give either a command, such as: -- impirun, or a server that runs: -at HOST:PORT");
  }
  if (options.page && options.subject.command.empty())
    return std::string("-serve needs a command: each start of the page starts the implementation anew");
  return std::move(options);
}

std::string Help() {
  std::string text =
      "usage: weft-impi-test server [OPTIONS] SCRIPT... -- COMMAND...\n"
      "       weft-impi-test client [OPTIONS] SCRIPT... -- COMMAND...\n\n"
      "Tests whether an implementation of IMPI 0.0 does as the specification says. A script plays clients against a "
      "server, or the server and\n"
      "all other clients against a client, and compares what comes with what has to come. SCRIPT is a file, or a "
      "folder of *.script files, of\n"
      "which those for this target are run.\n\n"
      "COMMAND starts the implementation under test anew for each script. Behind that of a server stand the words "
      "-server N. In that of a\n"
      "client, {server} becomes the HOST:PORT of the tester, {client} the number of the client, {ranks} how many ranks "
      "it has to start,\n"
      "{script} the name of the script, and {options} what the script wants there. For example:\n\n"
      "  weft-impi-test server scripts -- impirun\n"
      "  weft-impi-test client scripts -- impirun -client {client} {server} {options} -n {ranks} ./rank {script}\n\n"
      "Without COMMAND, a client is started by hand: the tester says how, and waits.\n\nOptions:\n\n";
  for (const Option& option : kOptions)
    text += std::string("  ") + option.name + " " + option.value + "\n        " + option.help + "\n";
  return text +
         "  -trace\n        print what was sent and came of all scripts, and not only of those that fail\n\n"
         "Exit status: 0 if all scripts pass, 1 if one fails, 2 for a wrong command line or script.\n";
}

}  // namespace weft::impi::tester
