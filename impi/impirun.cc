// impirun: a job of several MPI implementations (IMPI 0.0, chapter 2).
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "impi/run/options.h"
#include "impi/run/serve.h"

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto options = weft::impi::ParseServerOptions(words, getenv);
  if (!options.ok()) {
    std::fprintf(stderr, "impirun: %s\n", options.error().c_str());
    return 2;
  }
  return weft::impi::ServeJob(*options);
}
