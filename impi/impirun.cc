// impirun: a job of several MPI implementations (IMPI 0.0, chapter 2).
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/version.h"
#include "impi/run/client.h"
#include "impi/run/client_options.h"
#include "impi/run/host_agent.h"
#include "impi/run/options.h"
#include "impi/run/serve.h"
#include "pmi/launch/proxy.h"

namespace {

using Words = std::vector<std::string>;

// With options or not: what there is to do, or why there is nothing.
template <typename Options>
int Run(const weft::Result<Options, std::string>& options, int (*run)(const Options&)) {
  if (options.ok()) return run(*options);
  std::fprintf(stderr, "impirun: %s\n", options.error().c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const Words words(argv + 1, argv + argc);
  const std::string first = words.empty() ? "" : words[0];
  if (first == "-help" || first == "--help" || first == "-h") return std::fputs(weft::impi::HelpOfImpirun().c_str(), stdout) < 0;
  if (first == "-version" || first == "--version" || first == "-V") return std::printf("impirun (Weft) %s\n", std::string(weft::Version()).c_str()) < 0;
  if (words == Words{"--proxy"}) return weft::pmi::RemoteProxyMain();  // mpiexec's, on another host
  if (first == "--agent") return weft::impi::RunHostAgent({words.begin() + 1, words.end()});
  if (first == "-client") return Run(weft::impi::ParseClientOptions(words, getenv), weft::impi::RunClient);
  return Run(weft::impi::ParseServerOptions(words, getenv), weft::impi::ServeJob);
}
