#include "tools/weft/installation.h"

#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "base/version.h"
#include "tools/weft/libraries.h"

namespace weft::tool {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVerbsLibraries[] = {"libibverbs.so.1", "librdmacm.so.1"};
constexpr const char* kPackages[] = {"weft", "weft-mpi"};

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool Same(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::equivalent(a, b, error);
}

std::string Self() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).string();
}

bool IsPackaged(const std::string& folder) { return Same(folder, "/usr/lib/weft"); }

// The folders of a variable like PATH. An empty one is the current folder, which is left out: it is nobody's installation.
std::vector<std::string> FoldersOf(const char* variable) {
  std::vector<std::string> folders;
  const char* const value = std::getenv(variable);
  std::istringstream words(value == nullptr ? "" : value);
  for (std::string folder; std::getline(words, folder, ':');) {
    if (!folder.empty()) folders.push_back(folder);
  }
  return folders;
}

std::string Named(const std::optional<std::string>& version) { return version ? "Weft " + *version : "not Weft"; }

// Lines "PACKAGE STATUS" of dpkg-query; none where there is no dpkg.
std::vector<std::string> PackageStates() {
  std::vector<std::string> lines;
  const std::unique_ptr<FILE, int (*)(FILE*)> out(
      popen("dpkg-query -W -f '${Package} ${db:Status-Status}\\n' weft weft-mpi 2>/dev/null", "re"), pclose);
  if (out == nullptr) return lines;
  for (char line[256]; std::fgets(line, sizeof line, out.get()) != nullptr;) {
    lines.emplace_back(line);
    if (!lines.back().empty() && lines.back().back() == '\n') lines.back().pop_back();
  }
  return lines;
}

// Whether the file of a library has all of its bytes: the table of its sections stands at its end.
bool IsWhole(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  ElfW(Ehdr) header;
  if (!in.read(reinterpret_cast<char*>(&header), sizeof header)) return false;
  std::error_code error;
  return fs::file_size(path, error) >= header.e_shoff + std::uintmax_t{header.e_shnum} * header.e_shentsize;
}

// The reason why no file can be made in `folder`; empty if one can.
std::string WhyNotWritable(const std::string& folder) {
  std::string name = folder + "/weft-doctor.XXXXXX";
  const int fd = mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) return std::strerror(errno);
  close(fd);
  unlink(name.c_str());
  return "";
}

}  // namespace

std::string Reinstall(const std::string& folder) {
  return IsPackaged(folder) ? "install the package again; as root: apt-get install --reinstall ./weft_VERSION_ARCH.deb (and weft-mpi)"
                            : "run ./install PREFIX again, or unpack the archive again";
}

std::string LoadRemedy(const std::string& folder, const std::string& error) {
  std::smatch wanted;
  if (std::regex_search(error, wanted, std::regex("GLIBC_([0-9.]+)"))) {
    return "the glibc of this machine (" + std::string(gnu_get_libc_version()) + ") is too old for it, " + wanted.str(1) +
           " is needed: use weft-VERSION-linux-ARCH.tar.zst, which needs 2.31, or build Weft on this machine (./install PREFIX)";
  }
  return Reinstall(folder);
}

bool CheckFiles(Report& report, const std::string& folder) {
  const int before = report.failures();
  if (IsPackaged(folder)) {
    for (const std::string& line : PackageStates()) {
      const std::string name = line.substr(0, line.find(' ')), status = line.substr(line.find(' ') + 1);
      if (status == "installed" || status == "not-installed" || status == "config-files") continue;
      report.Bad("the package " + name + " is half-installed: dpkg calls it " + status,
                 "as root: dpkg --configure -a; if that does not help, " + Reinstall(folder));
    }
  }
  std::vector<std::string> wanted = {"libweft_paths.so", "weft-paths", "rsocket/librspreload.so"};
  // Of the MPI library and its mpiexec the one is of no use without the other.
  const fs::path mpiexec = fs::path(folder) / (IsPackaged(folder) ? "../../bin/mpiexec.weft" : "../../bin/mpiexec");
  const bool has_mpiexec = VersionOf(mpiexec.string()).has_value(), has_mpi = Exists(fs::path(folder) / "libmpich.so.12");
  if (has_mpiexec) wanted.insert(wanted.end(), {"libmpich.so.12", "libmpich.so", "libmpi.so.12"});
  for (const std::string& name : wanted) {
    if (!Exists(fs::path(folder) / name)) report.Bad("half-installed: " + name + " is not in " + folder, Reinstall(folder));
  }
  if (has_mpi && !has_mpiexec) {
    report.Bad("half-installed: the MPI library is in " + folder + ", but there is no " + mpiexec.lexically_normal().string(), Reinstall(folder));
  }
  bool whole = true;
  for (const char* name : {"libibverbs.so.1", "librdmacm.so.1", "libweft_paths.so", "libmpich.so.12"}) {
    const fs::path path = fs::path(folder) / name;
    if (!Exists(path) || IsWhole(path)) continue;
    report.Bad("half-installed: " + path.string() + " is cut short", "is the disk full? Make room, then " + Reinstall(folder));
    whole = false;
  }
  if (report.failures() == before) report.Good("files: nothing is missing in " + folder);
  return whole;
}

void CheckVersions(Report& report, const std::string& folder) {
  const std::string own(Version());
  const int before = report.failures();
  for (const char* name : {"libibverbs.so.1", "librdmacm.so.1", "libmpich.so.12", "../../bin/mpiexec", "../../bin/mpiexec.weft"}) {
    const fs::path path = (fs::path(folder) / name).lexically_normal();
    const std::optional<std::string> version = VersionOf(path.string());
    // An mpiexec beside it may be another MPI's.
    if (!Exists(path) || version == own || (!version && std::string(name).starts_with(".."))) continue;
    report.Bad("two versions: " + path.string() + " is " + Named(version) + ", this command Weft " + own,
               "half of an upgrade was done, or WEFT_LIBDIR leads to another installation: " + Reinstall(folder));
  }
  if (report.failures() == before) report.Good("version: " + own + ", of this command and of its libraries");
  for (const char* name : {"weft", "mpiexec"}) {
    for (const std::string& place : FoldersOf("PATH")) {
      const fs::path path = fs::path(place) / name;
      if (access(path.c_str(), X_OK) != 0) continue;
      const std::optional<std::string> version = VersionOf(path.string());
      if (version && *version != own && !Same(path, Self())) {
        report.Note("two versions side by side: " + std::string(name) + " in PATH is Weft " + *version + " (" + path.string() + "), this is " + own +
                    " (" + Self() + "): put " + fs::path(Self()).parent_path().string() + " first in PATH, or remove one of them");
      }
      break;  // a shell goes no further
    }
  }
}

void CheckLibraryPath(Report& report, const std::string& folder) {
  bool in_front = true;  // of Weft's own
  const std::vector<std::string> folders = FoldersOf("LD_LIBRARY_PATH");
  bool has_own = false;
  for (const std::string& place : folders) has_own = has_own || Same(place, folder);
  for (const std::string& place : folders) {
    if (Same(place, folder)) in_front = false;
    if (!in_front || Same(place, folder)) continue;
    for (const char* name : kVerbsLibraries) {
      const fs::path path = fs::path(place) / name;
      if (!Exists(path)) continue;
      const std::string what = "LD_LIBRARY_PATH leads to another " + std::string(name) + ": " + path.string() + " (" + Named(VersionOf(path.string())) + ")";
      if (has_own) {
        report.Bad(what + ", in front of " + folder, "programs of this shell do not use Weft: start them by weft run, or run eval \"$(weft env)\" again");
      } else {
        report.Note(what + ": programs use it unless they are started by weft run, also MPI programs on Weft's library; remove " + place +
                    " from LD_LIBRARY_PATH unless you want this");
      }
    }
  }
}

void CheckWritable(Report& report) {
  // As weft-paths chooses.
  const std::string shared = WhyNotWritable("/dev/shm");
  if (shared.empty()) {
    report.Good("/dev/shm can be written");
  } else if (WhyNotWritable("/tmp").empty()) {
    report.Note("/dev/shm cannot be written (" + shared + "): Weft uses /tmp; other libraries (UCX, Open MPI) need it: in a container, mount it (--tmpfs /dev/shm)");
  } else {
    report.Bad("neither /dev/shm (" + shared + ") nor /tmp (" + WhyNotWritable("/tmp") + ") can be written",
               "programs will not find /sys/class/infiniband: mount one of them (in a container --tmpfs /dev/shm), or set WEFT_PATHS=off");
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    if (const std::string why = WhyNotWritable(home); !why.empty()) {
      report.Note("the home folder " + std::string(home) + " cannot be written (" + why + "): Weft does not need it; for programs that do, set HOME");
    }
  }
  // The names of mpiexec's servers (mpiexec -nameserver-run, MPI_Publish_name).
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime != nullptr && *runtime != '\0') {
    if (const std::string why = WhyNotWritable(runtime); !why.empty()) {
      report.Note("XDG_RUNTIME_DIR=" + std::string(runtime) + " cannot be written (" + why + "): MPI_Publish_name needs it, or that it is unset");
    }
  }
}

}  // namespace weft::tool
