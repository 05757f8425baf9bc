// What each algorithm of each collective costs on a modelled network, which algorithm Weft chooses, and which one MPICH
// 4.0 would choose. --help lists the options.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "bench/collectives_model/mpich.h"
#include "bench/collectives_model/network.h"
#include "bench/collectives_model/programs.h"

namespace weft::bench {
namespace {

struct Options {
  std::vector<std::string> collectives = {"bcast",     "reduce",     "allreduce", "gather",        "scatter",
                                          "allgather", "allgatherv", "alltoall",  "reduce_scatter"};
  std::vector<std::string> layouts = {"32/32", "96/96", "128/8", "1000/100", "10000/1000"};
  std::vector<uint64_t> bytes = {8, 1024, 16 << 10, 256 << 10, 1 << 20, 16 << 20};
  std::vector<double> gbit = {1, 10};
  Network network;
  size_t most_actions = 20'000'000;
  bool only_choices = false;
};

// "RANKS/HOSTS". An empty text: it is right.
std::string CheckLayout(const std::string& text) {
  int ranks = 0, hosts = 0, end = 0;
  if (std::sscanf(text.c_str(), "%d/%d%n", &ranks, &hosts, &end) == 2 && end == static_cast<int>(text.size()) &&
      hosts > 0 && hosts <= ranks && ranks <= 10'000)
    return {};
  return "\"" + text + "\" is not RANKS/HOSTS, such as 1000/100: at least one host, and from as many ranks to 10000";
}
Layout ParseLayout(const std::string& text) {
  int ranks = 0, hosts = 0;
  std::sscanf(text.c_str(), "%d/%d", &ranks, &hosts);
  return {ranks, hosts};
}

void PrintRow(const Layout& layout, const Case& one, double gbit, const std::string& way, const std::string& us,
              const Outcome& outcome, const std::string& chosen_by) {
  std::printf("%-14s %6d %6d %10" PRIdMAX " %5g %-26s %13s %9" PRId64 " %13" PRId64 " %9" PRId64 " %13" PRId64 " %s\n",
              std::string(NameOfCollective(one.collective)).c_str(), layout.ranks(), layout.hosts(),
              static_cast<intmax_t>(one.bytes), gbit, way.c_str(), us.c_str(), outcome.host_messages,
              outcome.host_bytes, outcome.rank_messages, outcome.rank_bytes, chosen_by.c_str());
}

void PrintHeader() {
  std::printf("%-14s %6s %6s %10s %5s %-26s %13s %9s %13s %9s %13s %s\n", "collective", "ranks", "hosts", "bytes",
              "Gbit", "algorithm", "us", "host_msgs", "host_bytes", "rank_msgs", "rank_bytes", "chosen_by");
}

void Print(const Options& options, const Layout& layout, const Case& one) {
  const Way weft = WayOfWeft(one, layout), mpich = WayOfMpich(one, layout);
  std::vector<Way> ways = options.only_choices ? std::vector<Way>() : AllWays(one, layout);
  for (const Way& chosen : {weft, mpich}) {
    if (std::find(ways.begin(), ways.end(), chosen) == ways.end()) ways.push_back(chosen);
  }
  for (const Way& way : ways) {
    std::string chosen_by = way == weft ? "weft" : "";
    if (way == mpich) chosen_by += chosen_by.empty() ? "mpich" : ",mpich";
    if (chosen_by.empty()) chosen_by = "-";
    const auto programs = MakePrograms(one, way, layout, options.most_actions);
    for (const double gbit : options.gbit) {
      if (!programs) {
        PrintRow(layout, one, gbit, ToString(way), "too_large", {}, chosen_by);
        continue;
      }
      Network network = options.network;
      network.link_gbit = gbit;
      const auto outcome = CarryOut(network, layout.host_of(), *programs);
      char us[32] = "stuck";
      if (outcome) std::snprintf(us, sizeof us, "%.1f", outcome->us);
      PrintRow(layout, one, gbit, ToString(way), us, outcome.value_or(Outcome()), chosen_by);
    }
    std::fflush(stdout);
  }
}

int Run(int argc, char** argv) {
  Options options;
  Network& network = options.network;
  CLI::App app(
      "Collectives of Weft's MPI library in virtual time, on a modelled network. For each algorithm: the time; "
      "messages "
      "and bytes at the busiest host (to or from other hosts) and at the busiest rank; whether Weft or MPICH 4.0 "
      "chooses "
      "it. An algorithm a+b is a within each host and b between hosts. \"too_large\": see --most-actions.",
      "collectives_model");
  std::vector<std::string> known = options.collectives;
  app.add_option("--collectives", options.collectives, "which ones")->delimiter(',')->check(CLI::IsMember(known));
  app.add_option("--layouts", options.layouts, "RANKS/HOSTS, blocks of ranks on each host")
      ->delimiter(',')
      ->check(CLI::Validator(CheckLayout, "RANKS/HOSTS"));
  app.add_option("--bytes", options.bytes,
                 "of the vector, of the data of all ranks (allgather, reduce_scatter), of one block (gather, scatter, "
                 "alltoall)")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  app.add_option("--gbit", options.gbit, "bandwidths of a host's link in each direction")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--latency", network.latency_us, "us, between hosts")->check(CLI::NonNegativeNumber);
  app.add_option("--host-latency", network.host_latency_us, "us, within a host")->check(CLI::NonNegativeNumber);
  app.add_option("--memory-gbit", network.memory_gbit, "bandwidth of a host's memory for messages and copies")
      ->check(CLI::PositiveNumber);
  app.add_option("--message-cpu", network.message_cpu_us, "us of each end's processor for a message between hosts")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--host-message-cpu", network.host_message_cpu_us, "likewise, within a host")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--reduce-ns", network.reduce_ns_per_byte, "ns of the processor for each byte reduced")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--processors", network.processors, "of each host; 0: one for each rank")
      ->check(CLI::Range(0, 10'000));
  app.add_option("--most-actions", options.most_actions,
                 "leave out algorithms that need more steps of all ranks together (16 bytes of memory for each)");
  app.add_flag("--only-choices", options.only_choices, "only what Weft or MPICH chooses");
  CLI11_PARSE(app, argc, argv);

  PrintHeader();
  for (const std::string& text : options.layouts) {
    const Layout layout = ParseLayout(text);
    for (const std::string& name : options.collectives) {
      for (const uint64_t bytes : options.bytes) {
        Print(options, layout, {*mpi::FindCollective(name), static_cast<MPI_Aint>(bytes)});
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) { return weft::bench::Run(argc, argv); }
