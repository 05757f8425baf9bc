#include "base/settings.h"

#include <arpa/inet.h>
#include <sys/auxv.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/interface_file.h"
#include "base/log.h"
#include "base/nearest.h"

extern char** environ;

namespace weft {
namespace {

constexpr std::string_view kPrefix = "WEFT_";
constexpr std::string_view kMpiPrefix = "WEFT_MPI_";  // the MPI library's own table: mpi_hybrid/core/settings.h
constexpr std::string_view kPmiPrefix = "WEFT_PMI";   // and what a rank and mpiexec read: pmi/
constexpr std::string_view kImpiPrefix = "WEFT_IMPI";  // what impirun tells a rank: impi/

constexpr char kSameHostDefault[] = "auto";

// Order is that of the man page. An empty value counts as not set.
constexpr SettingInfo kTable[] = {
    {"WEFT_MPA_CRC", "auto|on|off", "auto",
     "CRC32C in every FPDU; auto omits it only if both ends are Weft on the same host."},
    {"WEFT_MPA_MARKERS", "on|off", "off", "Ask peers to send MPA markers."},
    {"WEFT_MPA_REVISION", "1|2", "2", "MPA revision offered to peers: 1 (RFC 5044) or 2 (RFC 6581)."},
    {"WEFT_EXTENSIONS", "auto|off", "auto",
     "Agree on larger FPDUs and other extensions with Weft peers, by a trailer in the private data."},
    {"WEFT_SAME_HOST", "auto|rings|off", kSameHostDefault,
     "Use shared memory with peers on this host, if both ends can; rings: the same for queue pairs and MPI messages, but no process reads another's memory."},
    {"WEFT_TRACE", "0|1", "0", "Write a readable line per event to stderr."},
    {"WEFT_PCAP", "FILE", "none", "Capture every connection into FILE for Wireshark; %p in it becomes the process id."},
    {"WEFT_FAULTS", "FAULT[;FAULT]...|@FILE", "none", "The failures to inject: see `weft faults --list` and weft-faults(7)."},
    {"WEFT_STATS", "0|1", "0", "Write a summary of every queue pair to stderr when the process ends."},
    {"WEFT_CONTROL", "on|off", "on", "Answer `weft stat` and `weft faults --pid` of the same user."},
    {"WEFT_DEVICES", "NAME[,NAME]...", "all", "The network interfaces that become RDMA devices."},
    {"WEFT_PERSONA", "roce|iwarp", "roce", "The kind of RNIC that programs see: one that looks like RoCE, or a strict iWARP one."},
    {"WEFT_LLP", "tcp|sctp|auto", "tcp", "The transport of connections; auto uses SCTP if the peer has it, else TCP."},
    {"WEFT_SCTP_ADDRESSES", "ADDRESS[,ADDRESS]...", "that of the device",
     "Local addresses of an SCTP association; several addresses give several paths."},
    {"WEFT_SCTP_INTERFACES", "FILE", "none",
     "If WEFT_SCTP_ADDRESSES is not set: a file with a line for each host, with its name and its addresses."},
    {"WEFT_SCTP_CMT", "off|on|pf", "off",
     "Send over all paths at once, not only over the primary one; pf sends no new data on a path after a time-out."},
    {"WEFT_SCTP_CARRIAGE", "udp|ip|kernel", "udp", "Send SCTP packets in UDP, or directly in IP, which needs CAP_NET_RAW; or use the kernel's SCTP."},
    {"WEFT_SCTP_UDP_PORT", "PORT (0 to 65535; 0: any)", "0", "UDP port on which this process receives SCTP packets."},
    {"WEFT_SCTP_HEARTBEAT", "MILLISECONDS (0 to 3600000; 0: none)", "1000", "Interval between the heartbeats on an idle path."},
    {"WEFT_SCTP_RTO_INITIAL", "MILLISECONDS (10 to 60000)", "500", "Retransmission time-out until a round trip is measured."},
    {"WEFT_SCTP_RTO_MIN", "MILLISECONDS (10 to 60000)", "100", "Shortest retransmission time-out."},
    {"WEFT_SCTP_RTO_MAX", "MILLISECONDS (10 to 60000)", "2000", "Longest retransmission time-out."},
    {"WEFT_SCTP_PATH_RETRIES", "COUNT (1 to 100)", "3", "A path becomes inactive after more than this many time-outs in a row."},
    {"WEFT_SCTP_RETRIES", "COUNT (1 to 1000)", "12", "The association is lost after this many time-outs in a row on all paths."},
    {"WEFT_SCTP_STREAMS", "COUNT (2 to 65535)", "64",
     "Streams of an association in each direction; so many queue pairs share one association."},
    {"WEFT_SCTP_SEND_BUFFER", "BYTES (262144 to 1073741824)", "2097152", "Buffer of an association for data that is not acknowledged."},
    {"WEFT_SCTP_RECEIVE_BUFFER", "BYTES (262144 to 1073741824)", "2097152", "Buffer of an association for data that is received but not read."},
    {"WEFT_SCTP_PMTU", "BYTES (576 to 65535)", "the interfaces'", "Largest IP packet."},
    {"WEFT_PATHS", "on|off", "on", "Show Weft's devices in /sys/class/infiniband and /dev/infiniband to programs under `weft run`."},
    {"WEFT_LIBDIR", "DIRECTORY", "beside the weft command", "Where `weft run` finds Weft's libraries."},
};

// One per row of kTable: takes a value that is among the row's choices, false when it is not acceptable after all.
using Apply = bool (*)(Settings&, std::string_view);

constexpr SameHost ReadSameHost(std::string_view value) {
  return value == "off" ? SameHost::kOff : value == "rings" ? SameHost::kRings : SameHost::kAuto;
}

bool ApplyDevices(Settings& settings, std::string_view value) {
  std::vector<std::string> names;
  for (size_t from = 0; from <= value.size();) {
    size_t comma = std::min(value.find(',', from), value.size());
    if (comma == from) return false;
    names.emplace_back(value.substr(from, comma - from));
    from = comma + 1;
  }
  settings.devices = std::move(names);
  return true;
}

bool ApplyAddresses(Settings& settings, std::string_view value) {
  std::vector<std::string> addresses;
  for (size_t from = 0; from <= value.size();) {
    const size_t comma = std::min(value.find(',', from), value.size());
    const std::string address(value.substr(from, comma - from));
    uint8_t bytes[sizeof(in6_addr)];
    if (inet_pton(AF_INET, address.c_str(), bytes) != 1 && inet_pton(AF_INET6, address.c_str(), bytes) != 1) return false;
    addresses.push_back(address);
    from = comma + 1;
  }
  settings.sctp.addresses = std::move(addresses);
  return true;
}

// A decimal number from `least` to `most`.
template <typename T>
bool ApplyNumber(T& into, std::string_view value, uint32_t least, uint32_t most) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < least || number > most) return false;
  into = static_cast<std::conditional_t<std::is_same_v<T, uint16_t>, uint16_t, uint32_t>>(number);
  return true;
}

constexpr uint32_t kLongestRto = 60'000, kLeastBuffer = 256 << 10, kMostBuffer = 1 << 30;

constexpr Apply kApply[] = {
    [](Settings& s, std::string_view v) {
      s.crc = v == "on" ? CrcPolicy::kOn : v == "off" ? CrcPolicy::kOff : CrcPolicy::kAuto;
      return true;
    },
    [](Settings& s, std::string_view v) { return s.markers = v == "on", true; },
    [](Settings& s, std::string_view v) { return s.mpa_revision = v == "1" ? 1 : 2, true; },
    [](Settings& s, std::string_view v) { return s.extensions = v == "auto", true; },
    [](Settings& s, std::string_view v) {
      s.same_host = ReadSameHost(v);
      return true;
    },
    [](Settings& s, std::string_view v) { return s.trace = v == "1", true; },
    [](Settings& s, std::string_view v) { return s.pcap = v, true; },
    [](Settings& s, std::string_view v) { return s.faults = v, true; },
    [](Settings& s, std::string_view v) { return s.stats = v == "1", true; },
    [](Settings& s, std::string_view v) { return s.control = v == "on", true; },
    ApplyDevices,
    [](Settings& s, std::string_view v) { return s.persona = v == "iwarp" ? Persona::kIwarp : Persona::kRoce, true; },
    [](Settings& s, std::string_view v) {
      s.llp = v == "sctp" ? Llp::kSctp : v == "auto" ? Llp::kAuto : Llp::kTcp;
      return true;
    },
    ApplyAddresses,
    [](Settings& s, std::string_view v) { return s.sctp.interfaces = v, true; },
    [](Settings& s, std::string_view v) {
      using Cmt = SctpSettings::Cmt;
      s.sctp.cmt = v == "on" ? Cmt::kOn : v == "pf" ? Cmt::kPotentiallyFailed : Cmt::kOff;
      return true;
    },
    [](Settings& s, std::string_view v) {
      using Carriage = SctpSettings::Carriage;
      s.sctp.carriage = v == "ip" ? Carriage::kIp : v == "kernel" ? Carriage::kKernel : Carriage::kUdp;
      return true;
    },
    [](Settings& s, std::string_view v) { return ApplyNumber(s.sctp.udp_port, v, 0, 65535); },
    [](Settings& s, std::string_view v) { return ApplyNumber(s.sctp.heartbeat, v, 0, 3'600'000); },
    [](Settings& s, std::string_view v) { return ApplyNumber(s.sctp.rto_initial, v, 10, kLongestRto); },
    [](Settings& s, std::string_view v) { return ApplyNumber(s.sctp.rto_min, v, 10, kLongestRto); },
    [](Settings& s, std::string_view v) { return ApplyNumber(s.sctp.rto_max, v, 10, kLongestRto); },
    [](Settings& s, std::string_view v) { return ApplyNumber(s.sctp.path_retries, v, 1, 100); },
    [](Settings& s, std::string_view v) { return ApplyNumber(s.sctp.association_retries, v, 1, 1000); },
    [](Settings& s, std::string_view v) { return ApplyNumber(s.sctp.streams, v, 2, 65535); },
    [](Settings& s, std::string_view v) { return ApplyNumber(s.sctp.send_buffer, v, kLeastBuffer, kMostBuffer); },
    [](Settings& s, std::string_view v) { return ApplyNumber(s.sctp.receive_buffer, v, kLeastBuffer, kMostBuffer); },
    [](Settings& s, std::string_view v) { return ApplyNumber(s.sctp.pmtu, v, 576, 65535); },
    [](Settings& s, std::string_view v) { return s.paths = v == "on", true; },
    [](Settings& s, std::string_view v) { return s.libdir = v, true; },
};
static_assert(std::size(kTable) == std::size(kApply));

// Rows whose values are words in lower case or digits list every choice; others describe a form, in capitals.
bool ListsChoices(std::string_view values) { return values.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == values.npos; }

bool IsChoice(std::string_view values, std::string_view value) {
  for (size_t from = 0; from <= values.size();) {
    size_t bar = std::min(values.find('|', from), values.size());
    if (values.substr(from, bar - from) == value) return true;
    from = bar + 1;
  }
  return false;
}

std::string UnknownName(std::string_view name) {
  const SettingInfo* nearest =
      &*std::min_element(std::begin(kTable), std::end(kTable), [&](const SettingInfo& a, const SettingInfo& b) {
        return EditDistance(a.name, name) < EditDistance(b.name, name);
      });
  std::string text = std::string(name) + " is not a setting of Weft; ";
  // Beyond that the nearest name is no likely meaning.
  constexpr size_t kLikelyTypo = 4;
  if (EditDistance(nearest->name, name) <= kLikelyTypo) return text + "did you mean " + nearest->name + "?";
  return text + "`weft settings` lists them";
}

void ReadOne(std::string_view name, std::string_view value, Settings& settings, std::vector<std::string>* problems) {
  auto row = std::find_if(std::begin(kTable), std::end(kTable), [&](const SettingInfo& s) { return s.name == name; });
  if (row == std::end(kTable)) {
    problems->push_back(UnknownName(name));
    return;
  }
  if (value.empty()) return;
  bool allowed = !ListsChoices(row->values) || IsChoice(row->values, value);
  if (allowed) allowed = kApply[row - std::begin(kTable)](settings, value);
  if (!allowed) {
    problems->push_back(std::string(name) + "=" + std::string(value) + " is not allowed; the value must be " +
                        row->values);
  }
}

// The names of settings that a program with other rights than its caller's was given.
std::string IgnoredNames() {
  std::string names;
  if (Settings::EnvironmentIsTrusted()) return names;
  for (const SettingInfo& setting : kTable) {
    const char* value = std::getenv(setting.name);  // only whether it is there
    if (value != nullptr && *value != '\0') names += (names.empty() ? "" : ", ") + std::string(setting.name);
  }
  return names;
}

struct Process {
  std::vector<std::string> problems;
  Settings settings;

  Process() : settings(Settings::FromEnvironment(&problems)) {
    for (const std::string& problem : problems) LogWarning(problem);
    if (const std::string names = IgnoredNames(); !names.empty()) {
      LogWarning("this program has other rights than its caller (set-user-ID, set-group-ID, capabilities): " + names +
                 " in the environment are ignored");
    }
    if (settings.trace) g_trace_enabled.store(true, std::memory_order_relaxed);
  }
};

// Never destroyed: other threads may read it while the process exits.
const Process& TheProcess() {
  static const Process* const process = new Process;
  return *process;
}

}  // namespace

std::span<const SettingInfo> AllSettings() { return kTable; }

SameHost Settings::SharesMemory() const { return same_host.value_or(ReadSameHost(kSameHostDefault)); }

bool Settings::NeedsWire() const { return llp == Llp::kSctp || !pcap.empty() || crc == CrcPolicy::kOn || markers || !faults.empty(); }

bool Settings::EnvironmentIsTrusted() { return getauxval(AT_SECURE) == 0; }

Settings Settings::FromEnvironment(std::vector<std::string>* problems) {
  Settings settings;
  if (!EnvironmentIsTrusted()) return settings;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view text = *entry;
    size_t equals = text.find('=');
    if (!text.starts_with(kPrefix) || text.starts_with(kMpiPrefix) || text.starts_with(kPmiPrefix) || text.starts_with(kImpiPrefix) || equals == text.npos) continue;
    ReadOne(text.substr(0, equals), text.substr(equals + 1), settings, problems);
  }
  if (!settings.sctp.interfaces.empty() && settings.sctp.addresses.empty()) {
    auto addresses = ReadInterfaceFile(settings.sctp.interfaces);
    if (addresses.ok()) {
      settings.sctp.addresses = std::move(addresses).value();
    } else {
      problems->push_back("WEFT_SCTP_INTERFACES: " + addresses.error());
    }
  }
  return settings;
}

const Settings& ProcessSettings() { return TheProcess().settings; }

const std::vector<std::string>& ProcessSettingProblems() { return TheProcess().problems; }

}  // namespace weft
