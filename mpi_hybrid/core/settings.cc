#include "mpi_hybrid/core/settings.h"

#include <algorithm>
#include <string_view>

extern char** environ;

namespace weft::mpi {
namespace {

constexpr std::string_view kPrefix = "WEFT_MPI_";

constexpr SettingInfo kSettings[] = {
    {"WEFT_MPI_HOST", "found by itself",
     "The address, host name or interface that the other ranks reach this process by; by default 127.0.0.1 when all ranks are on "
     "one host, "
     "else the address towards the launcher and those of all interfaces that are up, tried in turn."},
    {"WEFT_MPI_LLP", "tcp", "tcp or sctp: what carries messages; the same at all ranks. WEFT_SCTP_... say how SCTP is to be."},
    {"WEFT_MPI_EAGER", "131072", "Messages of more bytes wait for the receiver to be ready (rendezvous)."},
    {"WEFT_MPI_WINDOW", "8388608", "Bytes of unexpected messages from one sender that a process stores."},
    {"WEFT_MPI_SPIN_US", "chosen by cores and ranks", "Microseconds that a waiting process polls before it sleeps."},
    {"WEFT_MPI_RMA_CONNECT", "on first use",
     "static: the queue pairs of a window are made with it, not at the first access to each target."},
    {"WEFT_MPI_COLL", "chosen by size", "COLLECTIVE:ALGORITHM[,...]: the algorithm of each collective named, for tests."},
};

}  // namespace

std::span<const SettingInfo> AllSettings() { return kSettings; }

std::string UnknownSetting() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with(kPrefix)) continue;
    const std::string_view name = text.substr(0, text.find('='));
    const bool known =
        std::any_of(std::begin(kSettings), std::end(kSettings), [&](const SettingInfo& s) { return s.name == name; });
    if (known) continue;
    std::string known_names;
    for (const SettingInfo& setting : kSettings) known_names += std::string(" ") + setting.name;
    return std::string(name) + " is not a setting of Weft's MPI library; there are" + known_names;
  }
  return "";
}

}  // namespace weft::mpi
