#include "impi/run/options.h"

#include <utility>

#include "impi/server/rendezvous.h"

namespace weft::impi {

Result<ServerOptions, std::string> ParseServerOptions(const std::vector<std::string>& words, const EnvironmentReader& get) {
  ServerOptions options;
  std::vector<int> wanted;
  for (size_t i = 0; i < words.size(); i += 2) {
    const std::string& option = words[i];
    if (option != "-server" && option != "-port" && option != "-auth") return "unknown option '" + option + "'; -server, -port and -auth are known";
    if (i + 1 == words.size()) return option + " needs a value";
    const std::string& value = words[i + 1];
    if (option == "-server") {
      const auto clients = NumberUpTo(value, Rendezvous::kMostClients);
      if (!clients || *clients == 0) return "-server '" + value + "': not a number of clients; a job has 1 to 32";
      options.clients = static_cast<int>(*clients);
    } else if (option == "-port") {
      const auto port = NumberUpTo(value, UINT16_MAX);
      if (!port) return "-port '" + value + "': not a port; those are 0 (any) to 65535";
      options.port = static_cast<uint16_t>(*port);
    } else {
      auto methods = ParseAuthList(value);
      if (!methods.ok()) return methods.error();
      wanted = std::move(methods).value();
    }
  }
  if (options.clients == 0) return std::string("-server N: how many clients the job has");
  auto authentication =
      AvailableAuthentication(wanted, get, "set IMPI_AUTH_KEY to a number that server and clients share, or IMPI_AUTH_NONE to let anybody in");
  if (!authentication.ok()) return authentication.error();
  options.authentication = std::move(authentication).value();
  return options;
}

}  // namespace weft::impi
