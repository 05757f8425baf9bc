#ifndef BASE_SETTINGS_H_
#define BASE_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft {

// The settings that a user can make, each an environment variable. The libraries, `weft run` and the man page all read
// this one table.
struct SettingInfo {
  const char* name;     // "WEFT_MPA_CRC"
  const char* values;   // "auto|on|off", "FILE", "NAME[,NAME]..."
  const char* initial;  // the default in words, "auto"
  const char* help;     // one sentence
};
std::span<const SettingInfo> AllSettings();

enum class CrcPolicy { kAuto, kOn, kOff };

// How the devices look to programs (docs/architecture.md). Both personas are iWARP on the wire.
enum class Persona {
  kIwarp,  // transport iWARP, strict RFC behaviour; queue pairs connect by rdma_cm only
  // Transport InfiniBand over Ethernet; queue pairs may also connect by ibv_modify_qp. Between two Weft ends,
  // InfiniBand's semantics hold.
  kRoce,
};

// What carries connections (docs/settings.md).
enum class Llp {
  kTcp,
  kSctp,
  kAuto,  // SCTP if the peer has it, else TCP
};

// Shared memory between processes on one host.
enum class SameHost {
  // Shared memory if both ends can use it, else TCP. Long messages are copied from process to process if the kernel
  // allows it.
  kAuto,
  kRings,  // the same for queue pairs, but no process reads or writes the memory of another
  kOff,
};

// WEFT_SCTP_...: the settings of SCTP. A nullopt takes the default of transport/sctp/settings.h. Times are in
// milliseconds, lengths in bytes.
struct SctpSettings {
  std::vector<std::string> addresses;  // our numeric addresses that associations use; several give several paths
  std::string interfaces;              // a file (base/interface_file.h) that fills `addresses` if that is not set
  enum class Carriage : uint8_t { kUdp, kIp, kKernel };
  Carriage carriage = Carriage::kUdp;  // packets in UDP, directly in IP, or the kernel's SCTP (in IP)
  uint16_t udp_port = 0;               // local UDP port for packets of SCTP; 0: the kernel chooses
  enum class Cmt { kOff, kOn, kPotentiallyFailed } cmt = Cmt::kOff;
  std::optional<uint32_t> heartbeat, rto_initial, rto_min, rto_max;
  std::optional<uint32_t> path_retries, association_retries;
  std::optional<uint32_t> streams, send_buffer, receive_buffer, pmtu;
};

struct Settings {
  CrcPolicy crc = CrcPolicy::kAuto;      // WEFT_MPA_CRC
  bool markers = false;                  // WEFT_MPA_MARKERS=on|off: ask peers to send us markers
  int mpa_revision = 2;                  // WEFT_MPA_REVISION=1|2
  bool extensions = true;                // WEFT_EXTENSIONS=auto|off: the Weft trailer in private data
  // WEFT_SAME_HOST=auto|rings|off; nullopt: not set. Most callers want SharesMemory()
  std::optional<SameHost> same_host;
  bool trace = false;                    // WEFT_TRACE=0|1
  std::string pcap;                      // WEFT_PCAP=FILE
  std::string faults;                    // WEFT_FAULTS=SPECIFICATION or @FILE, see faults/plan.h
  bool stats = false;                    // WEFT_STATS=0|1
  bool control = true;                   // WEFT_CONTROL=on|off
  std::vector<std::string> devices;      // WEFT_DEVICES=lo,eth0: only these interfaces
  Persona persona = Persona::kRoce;      // WEFT_PERSONA=roce|iwarp
  Llp llp = Llp::kTcp;                   // WEFT_LLP=tcp|sctp|auto
  SctpSettings sctp;
  bool paths = true;                     // WEFT_PATHS=on|off: `weft run` preloads libweft_paths.so
  std::string libdir;                    // WEFT_LIBDIR=DIRECTORY: where `weft run` finds the libraries

  SameHost SharesMemory() const;  // WEFT_SAME_HOST, or its default
  // Whether RDMA must use a network wire even on one host: SCTP is asked for, or a setting acts on the bytes on the
  // wire (WEFT_PCAP, WEFT_MPA_CRC=on, WEFT_MPA_MARKERS=on, WEFT_FAULTS).
  bool NeedsWire() const;

  // Whether the environment comes from a user with the rights of this process. False in a program that is set-user-ID
  // or set-group-ID or has got capabilities (secure_getenv(3)): there the environment would let its caller read and
  // write files with the program's rights.
  static bool EnvironmentIsTrusted();

  // Reads the environment; ignores all of it unless it is trusted. Each problem adds one entry to `problems`: a WEFT_
  // name that is not in the table, with the nearest one that is, or a value that is not allowed. Such a setting keeps
  // its default.
  static Settings FromEnvironment(std::vector<std::string>* problems);
};

// The settings of the process, read once. Problems are logged. A setting that is silently ignored would mislead, so
// problems also end the `weft` command with status 2, and make device enumeration fail in a library.
const Settings& ProcessSettings();
const std::vector<std::string>& ProcessSettingProblems();

}  // namespace weft

#endif  // BASE_SETTINGS_H_
