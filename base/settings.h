#ifndef BASE_SETTINGS_H_
#define BASE_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft {

// The settings a user can make, each an environment variable. One table: the libraries, `weft run` and the man page read it.
struct SettingInfo {
  const char* name;     // "WEFT_MPA_CRC"
  const char* values;   // "auto|on|off", "FILE", "NAME[,NAME]..."
  const char* initial;  // the default in words, "auto"
  const char* help;     // one sentence
};
std::span<const SettingInfo> AllSettings();

enum class CrcPolicy { kAuto, kOn, kOff };

// The face that the devices show to programs (docs/architecture.md). Both are iWARP on the wire.
enum class Persona {
  kIwarp,  // transport iWARP, RFC behaviour to the letter; queue pairs connect by rdma_cm only
  kRoce,   // transport InfiniBand over Ethernet; queue pairs may connect by ibv_modify_qp; InfiniBand's semantics between two Weft ends
};

// What carries connections (docs/settings.md).
enum class Llp {
  kTcp,
  kSctp,
  kAuto,  // SCTP where the peer has it, else TCP
};

// Shared memory between processes on one host.
enum class SameHost {
  kAuto,   // where both ends can, TCP elsewhere; and what is long is copied from process to process, where the kernel allows it
  kRings,  // queue pairs: the same, but nobody reaches into the memory of another process
  kOff,
};

// WEFT_SCTP_...: how SCTP is to be. What is nullopt is as transport/sctp/settings.h has it; times are in milliseconds, lengths in bytes.
struct SctpSettings {
  std::vector<std::string> addresses;  // ours that associations use, several for several paths; numeric
  std::string interfaces;              // a file (base/interface_file.h) that fills in `addresses` where they are not set
  enum class Carriage : uint8_t { kUdp, kIp, kKernel };
  Carriage carriage = Carriage::kUdp;  // packets in UDP, in IP itself, or those of the kernel's SCTP (in IP)
  uint16_t udp_port = 0;               // on which packets in UDP are taken; 0: the kernel chooses
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
  std::optional<SameHost> same_host;     // WEFT_SAME_HOST=auto|rings|off; nullopt: not set. Most want SharesMemory()
  bool trace = false;                    // WEFT_TRACE=0|1
  std::string pcap;                      // WEFT_PCAP=FILE
  std::string faults;                    // WEFT_FAULTS=SPECIFICATION or @FILE: faults/plan.h reads it
  bool stats = false;                    // WEFT_STATS=0|1
  bool control = true;                   // WEFT_CONTROL=on|off
  std::vector<std::string> devices;      // WEFT_DEVICES=lo,eth0: only these interfaces
  Persona persona = Persona::kRoce;      // WEFT_PERSONA=roce|iwarp
  Llp llp = Llp::kTcp;                   // WEFT_LLP=tcp|sctp|auto
  SctpSettings sctp;
  bool paths = true;                     // WEFT_PATHS=on|off: `weft run` preloads libweft_paths.so
  std::string libdir;                    // WEFT_LIBDIR=DIRECTORY: where `weft run` finds the libraries

  SameHost SharesMemory() const;  // what WEFT_SAME_HOST says, or its default
  // Whether RDMA is to go over a wire whatever the host: SCTP is asked for, or something that happens to the bytes on the way
  // (WEFT_PCAP, WEFT_MPA_CRC=on, WEFT_MPA_MARKERS=on, WEFT_FAULTS).
  bool NeedsWire() const;

  // Whether the environment is that of a user with our rights: not in a program that is set-user-ID or set-group-ID or has got
  // capabilities (secure_getenv(3)), where it would let whoever starts it read and write files as somebody else.
  static bool EnvironmentIsTrusted();

  // Reads the environment, of which nothing counts unless it is trusted. Problems (a WEFT_ name that is not in the table, with the nearest one that is; a value that is not
  // allowed) are described one per entry of `problems`, and the setting keeps its default.
  static Settings FromEnvironment(std::vector<std::string>* problems);
};

// The process's settings, read once; problems go to the log and, since a setting that is silently ignored misleads, end the
// process with status 2 when called from `weft`, and are errors that device enumeration reports when called from a library.
const Settings& ProcessSettings();
const std::vector<std::string>& ProcessSettingProblems();

}  // namespace weft

#endif  // BASE_SETTINGS_H_
