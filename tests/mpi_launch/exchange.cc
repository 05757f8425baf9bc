// A rank that is nothing but pmi::Client: puts a value, and gets everyone's after a barrier. Options as words:
//   get-early     asks for a key before anyone put it, which must fail
//   die NUMBER    rank 1 kills itself by this signal between init and finalize
//   exit STATUS   rank 1 exits with this status there
//   abort CODE    rank 1 calls Abort
//   brief         puts 200 bytes and gets what the next rank put
//   twice         does all of it twice, as two programs of a script would
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "pmi/client.h"

namespace {

using weft::pmi::Client;

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "exchange: %s\n", why.c_str());
  std::exit(3);
}

void Check(const std::string& problem) {
  if (!problem.empty()) Fail(problem);
}

void Misbehave(Client& client, const char* how, int number) {
  if (client.rank() != 1) return;
  if (std::strcmp(how, "die") == 0) raise(number);
  if (std::strcmp(how, "exit") == 0) _exit(number);
  if (std::strcmp(how, "abort") == 0) {
    client.Abort(number, "asked to");
    pause();
  }
}

std::string ValueOf(int rank, bool brief) { return "value=" + std::to_string(rank) + std::string(brief ? 190 : 900, 'x'); }

void Exchange(int argc, char** argv) {
  auto connected = Client::Connect();
  if (!connected) Fail(connected.error().message);
  Client& client = *connected.value();
  if (argc > 1 && std::strcmp(argv[1], "get-early") == 0 && client.Get("address-0")) Fail("a key that nobody put has a value");
  Check(client.Barrier());
  const bool brief = argc > 1 && std::strcmp(argv[1], "brief") == 0;
  Check(client.Put("address-" + std::to_string(client.rank()), ValueOf(client.rank(), brief)));
  if (argc > 2) Misbehave(client, argv[1], std::atoi(argv[2]));
  Check(client.Barrier());
  const int first = brief ? (client.rank() + 1) % client.size() : 0;
  for (int rank = first; rank < (brief ? first + 1 : client.size()); ++rank) {
    auto value = client.Get("address-" + std::to_string(rank));
    if (!value) Fail(value.error().message);
    if (value.value() != ValueOf(rank, brief)) Fail("rank " + std::to_string(rank) + " put something else");
  }
  const auto secret = client.Get("weft_secret");
  std::printf("rank %d of %d, application %d, universe %d, secret %zu\n", client.rank(), client.size(), client.appnum(),
              client.universe_size(), secret ? secret->size() : 0);
  Check(client.Finalize());
}

}  // namespace

int main(int argc, char** argv) {
  Exchange(argc, argv);
  return 0;
}
