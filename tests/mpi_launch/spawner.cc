// A rank that spawns others like itself by pmi::Client. Words:
//   parent PROGRAM COUNT [info KEY VALUE]... [times N] [disconnect] [wait FILE] [-- ARGUMENTS...]
//       [speak FILE | die FILE]
//       rank 0 spawns COUNT processes of PROGRAM with ARGUMENTS, N times, prints what came of it, and waits until FILE is there; the others
//       meanwhile wait until theirs is there, and ask mpiexec for a name, or kill themselves
//   child [die SIGNAL [FILE] | abort CODE | exit STATUS | linger FILE]
//       exchanges values with the ranks of its own job, and says who it is
//   publish SERVICE PORT, lookup SERVICE: prints the port
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "pmi/client.h"

namespace {

using weft::pmi::Client;

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "spawner: %s\n", why.c_str());
  std::exit(3);
}

void Check(const std::string& problem) {
  if (!problem.empty()) Fail(problem);
}

void AwaitFile(const std::string& path) {
  while (access(path.c_str(), F_OK) != 0) usleep(10000);
}

void Parent(Client& client, const std::vector<std::string>& words) {
  weft::pmi::SpawnCommand command{words.at(1), {}, std::atoi(words.at(2).c_str()), {}};
  int times = 1;
  bool disconnect = false;
  std::string wait, speak, die;
  for (size_t i = 3; i < words.size(); ++i) {
    if (words[i] == "info") {
      command.info.emplace_back(words.at(i + 1), words.at(i + 2));
      i += 2;
    } else if (words[i] == "times") {
      times = std::atoi(words.at(++i).c_str());
    } else if (words[i] == "disconnect") {
      disconnect = true;
    } else if (words[i] == "wait") {
      wait = words.at(++i);
    } else if (words[i] == "speak") {
      speak = words.at(++i);
    } else if (words[i] == "die") {
      die = words.at(++i);
    } else if (words[i] == "--") {
      command.arguments.assign(words.begin() + static_cast<long>(i) + 1, words.end());
      break;
    }
  }
  if (client.rank() != 0 && !speak.empty()) {
    AwaitFile(speak);
    std::printf("%s\n", client.Lookup("nothing") ? "found" : "mpiexec answers");
    std::fflush(stdout);
  }
  if (client.rank() != 0 && !die.empty()) {
    AwaitFile(die);
    raise(SIGKILL);
  }
  for (int i = 0; i < times && client.rank() == 0; ++i) {
    const auto spawned = client.Spawn({command}, {{"greeting", "from=" + client.kvs_name()}});
    std::string errors;
    for (const int error : spawned.errors) errors += " " + std::to_string(error);
    if (i == 0 || i + 1 == times) std::printf("spawned: '%s', errors%s\n", spawned.problem.c_str(), errors.c_str());
    std::fflush(stdout);
    if (disconnect) Check(client.DisconnectJob(spawned.job_id));
  }
  if (disconnect) std::printf("disconnected\n");
  std::fflush(stdout);
  if (!wait.empty()) AwaitFile(wait);
  Check(client.Barrier());
}

void Child(Client& client, const std::vector<std::string>& words) {
  const auto greeting = client.Get("greeting");
  if (client.spawned() != greeting.ok()) Fail("spawned and not greeted, or the other way round");
  Check(client.Put("key-" + std::to_string(client.rank()), "value"));
  Check(client.Barrier());
  for (int rank = 0; rank < client.size(); ++rank) {
    if (!client.Get("key-" + std::to_string(rank))) Fail("rank " + std::to_string(rank) + " put nothing");
  }
  const auto secret = client.Get("weft_secret");
  char directory[4096];
  std::printf("child %d of %d, spawned %d, secret %zu, universe %d, in %s\n", client.rank(), client.size(), client.spawned(),
              secret ? secret->size() : 0, client.universe_size(), getcwd(directory, sizeof(directory)));
  std::fflush(stdout);
  const bool last = client.rank() == client.size() - 1;
  if (words.size() > 2 && last) {
    const int number = std::atoi(words[2].c_str());
    if (words[1] == "die" && words.size() > 3) AwaitFile(words[3]);
    if (words[1] == "die") raise(number);
    if (words[1] == "abort") {
      client.Abort(number, "asked to");
      pause();
    }
    if (words[1] == "exit") _exit(number);
    if (words[1] == "linger") AwaitFile(words[2]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  auto connected = Client::Connect();
  if (!connected) Fail(connected.error().message);
  Client& client = *connected.value();
  const std::string what = words.empty() ? "child" : words[0];
  if (what == "parent") Parent(client, words);
  if (what == "child") Child(client, words);
  if (what == "publish") {
    Check(client.Publish(words.at(1), words.at(2)));
    if (words.size() > 3) AwaitFile(words[3]);
  }
  if (what == "lookup") {
    const auto port = client.Lookup(words.at(1));
    std::printf("%s\n", port ? port->c_str() : port.error().message.c_str());
  }
  Check(client.Finalize());
  return 0;
}
