#include "mpi_hybrid/core/settings.h"

#include <algorithm>
#include <string_view>

extern char** environ;

namespace weft::mpi {
namespace {

constexpr std::string_view kPrefix = "WEFT_MPI_";

constexpr SettingInfo kSettings[] = {
    {"WEFT_MPI_HOST", "found by itself",
     "The address, host name or interface by which the other ranks reach this process; by default 127.0.0.1 when all ranks are on "
     "one host, "
     "else the address towards the launcher and those of all interfaces that are up, tried in turn."},
    {"WEFT_MPI_LLP", "tcp", "The transport of messages, tcp or sctp; the same at all ranks. The WEFT_SCTP_... settings configure SCTP.", "tcp|sctp"},
    {"WEFT_MPI_EAGER", "131072", "Messages of more bytes wait for the receiver to be ready (rendezvous)."},
    {"WEFT_MPI_WINDOW", "8388608", "Bytes of unexpected messages from one sender that a process stores."},
    {"WEFT_MPI_SPIN_US", "chosen by cores and ranks", "Microseconds that a waiting process polls before it sleeps."},
    {"WEFT_MPI_RMA_ATOMICS", "off",
     "on: sums and compare-and-swaps of one integer of 8 bytes are atomics of the RNIC, if it excludes the processors.", "on|off"},
    {"WEFT_MPI_RMA_CONNECT", "on first use",
     "static: the queue pairs of a window are made with it, not at the first access to each target.", "static"},
    {"WEFT_MPI_COLL", "chosen by size", "COLLECTIVE:ALGORITHM[,...]: the algorithm of each collective named, for tests."},
    {"WEFT_MPI_CONNECT_TIMEOUT", "180", "Seconds that MPI_Comm_connect waits for MPI_Comm_accept; the info key timeout overrides it."},
    {"WEFT_PMI", "chosen by launcher", "Version of PMI that the process uses with its launcher; alone: it is a job of one rank, however it was started.", "1|2|alone"},
    {"WEFT_PMI_MPIEXEC", "bin/mpiexec beside lib/weft", "The mpiexec that a process without a launcher starts when it spawns processes or publishes a name."},
    {"WEFT_PMI_NAMESERVER", "none", "The file of a name server (mpiexec -nameserver)."},
    {"WEFT_PMI_OOB", "chosen by launcher", "NONE: the launcher tells over PMI's out-of-band channel why it ends the job. The name of a signal: the launcher sends that signal, too."},
    {"WEFT_PMI_SECRET_FILE", "none", "A file; the process proves to its launcher that it knows the first line."},
    {"PMI_SOCKTYPE", "POSIX", "OpenSSL: TLS between a process and its launcher.", "POSIX|OpenSSL"},
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
    for (const SettingInfo& setting : kSettings) {
      if (std::string_view(setting.name).starts_with(kPrefix)) known_names += std::string(" ") + setting.name;
    }
    return std::string(name) + " is not a setting of Weft's MPI library; there are" + known_names;
  }
  return "";
}

}  // namespace weft::mpi
