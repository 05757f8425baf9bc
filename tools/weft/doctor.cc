#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file_limit.h"
#include "base/settings.h"
#include "tools/weft/commands.h"
#include "tools/weft/installation.h"
#include "tools/weft/libraries.h"
#include "tools/weft/report.h"
#include "tools/weft/self_test.h"
#include "tools/weft/verbs_api.h"

namespace weft::tool {
namespace {

namespace fs = std::filesystem;

// One symbol of each version node that stock programs bind to.
struct Node {
  const char* library;
  const char* symbol;
  const char* version;
};
constexpr Node kNodes[] = {
    {"libibverbs.so.1", "ibv_get_sysfs_path", "IBVERBS_1.0"},
    {"libibverbs.so.1", "ibv_get_device_list", "IBVERBS_1.1"},
    {"libibverbs.so.1", "ibv_qp_to_qp_ex", "IBVERBS_1.6"},
    {"libibverbs.so.1", "ibv_reg_mr_iova2", "IBVERBS_1.8"},
    {"libibverbs.so.1", "_ibv_query_gid_ex", "IBVERBS_1.11"},
    {"libibverbs.so.1", "ibv_query_qp_data_in_order", "IBVERBS_1.14"},
    {"libibverbs.so.1", "verbs_register_driver_34", "IBVERBS_PRIVATE_34"},
    {"librdmacm.so.1", "rdma_create_id", "RDMACM_1.0"},
    {"librdmacm.so.1", "rdma_establish", "RDMACM_1.2"},
    {"librdmacm.so.1", "rdma_set_local_ece", "RDMACM_1.3"},
};

// False: the libraries show no device until it is mended.
bool CheckSettings(Report& report) {
  const std::vector<std::string> problems = SettingProblems();
  for (const std::string& problem : problems) report.Bad(problem, "unset or correct it; 'weft settings' lists them");
  if (problems.empty()) report.Good("settings: every WEFT_ variable is known and has a valid value");
  return problems.empty();
}

void CheckNodes(Report& report, const std::string& folder, const Library& verbs, const Library& cm) {
  const int before = report.failures();
  for (const Node& node : kNodes) {
    const bool in_verbs = std::string(node.library) == "libibverbs.so.1";
    if ((in_verbs ? verbs : cm).Has(node.symbol, node.version)) continue;
    report.Bad(std::string(node.library) + " lacks " + node.symbol + "@" + node.version,
               "the library is not this Weft's or is damaged: " + Reinstall(folder));
  }
  if (report.failures() == before) report.Good("ABI: all version nodes that stock programs need are present");
}

// The distribution's perftest, UCX and others load providers of real hardware, which bind to the private node.
void CheckProviders(Report& report) {
  for (const char* provider : {"libmlx5.so.1", "libefa.so.1"}) {
    std::string error;
    const Library library(provider, &error);
    if (library) {
      report.Good(std::string(provider) + " loads on top of Weft's libibverbs");
    } else if (error.find("cannot open shared object file") != std::string::npos) {
      report.Note(std::string(provider) + " is not installed (only programs linked with it need it)");
    } else {
      report.Bad(error, "its rdma-core asks for symbols that this Weft does not have: programs linked with " +
                            std::string(provider) + " will not start; please report it");
    }
  }
}

void CheckMpi(Report& report, const std::string& folder) {
  const std::string path = folder + "/libmpich.so.12";
  if (!fs::exists(path)) return report.Note("no MPI library is installed here (" + path + ")");
  std::string error;
  if (const Library library(path, &error); library) {
    report.Good("the MPI library loads: " + path);
  } else {
    report.Bad("the MPI library does not load: " + error, LoadRemedy(folder, error));
  }
}

// The output of a command without its last newline; empty when it cannot be run.
std::string OutputOf(const std::vector<std::string>& command) {
  int fds[2];
  if (pipe(fds) != 0) return "";
  std::fflush(stdout);  // or the child has what waits there, too
  const pid_t child = fork();
  if (child == 0) {
    dup2(fds[1], STDOUT_FILENO);
    close(fds[0]);
    close(fds[1]);
    _exit(Run(command));
  }
  close(fds[1]);
  std::string out;
  char buffer[512];
  for (ssize_t n; (n = read(fds[0], buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<std::size_t>(n));
  close(fds[0]);
  int status = 0;
  waitpid(child, &status, 0);
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

// What a program started by `weft run` gets for `soname`, by starting one.
std::string ResolvedUnderRun(const std::string& soname) { return OutputOf({fs::read_symlink("/proc/self/exe").string(), "which", soname}); }

void CheckShadows(Report& report, const std::string& folder) {
  for (const char* soname : {"libibverbs.so.1", "librdmacm.so.1"}) {
    const std::string found = ResolvedUnderRun(soname);
    std::error_code error;
    if (!found.empty() && fs::equivalent(found, fs::path(folder) / soname, error)) {
      report.Good(std::string("under 'weft run' programs get ") + found);
    } else {
      report.Bad(std::string("under 'weft run' ") + soname + " is " + (found.empty() ? "not found" : found),
                 "another copy comes first: look at LD_PRELOAD and /etc/ld.so.preload");
    }
  }
  if (const char* preload = std::getenv("LD_PRELOAD"); preload != nullptr && *preload != '\0') {
    report.Note(std::string("LD_PRELOAD is set: ") + preload);
  }
}

void CheckLimits(Report& report) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  const rlim_t most = std::min(files.rlim_max, weft::kMostFiles);  // the RNIC raises the soft limit to the hard one
  const std::string count = std::to_string(most);
  if (most < 256) {
    report.Bad("only " + count + " open files are allowed, and each connection needs one",
               "raise the hard limit (ulimit -Hn shows it): /etc/security/limits.conf, LimitNOFILE= of a service, --ulimit of a container");
  } else {
    report.Good("open files allowed: " + count + " (each connection needs one)");
  }
  report.Note("the memlock limit need not be raised: Weft pins no memory");
}

// What programs find in /sys and /dev: made by the command beside the library, which says where.
void CheckPaths(Report& report, const std::string& folder) {
  std::vector<std::string> problems;
  if (!weft::Settings::FromEnvironment(&problems).paths) return report.Note("WEFT_PATHS=off: programs see the machine's own /sys and /dev");
  if (PathsLibrary(folder).empty()) return;  // CheckFiles has said it
  const std::string root = OutputOf({folder + "/weft-paths"});
  if (fs::exists(root + "/sys/class/infiniband")) {
    report.Good("/sys/class/infiniband and /dev/infiniband are shown from " + root);
  } else {
    report.Bad("weft-paths made no tree for /sys/class/infiniband", "run " + folder + "/weft-paths to see why");
  }
}

// Whether the loopback has a device.
bool CheckDevices(Report& report, const Library& verbs) {
  std::string error;
  const auto views = ListDevices(verbs, &error);
  if (!error.empty()) report.Bad(error, "see the line that Weft logged above");
  if (views.empty()) {
    report.Bad("no device is visible", WhyNoDevice());
    return false;
  }
  bool loopback = false;
  std::string names;
  for (const DeviceView& view : views) {
    names += " " + view.name + "(" + view.state + ")";
    loopback = loopback || std::find(view.gids.begin(), view.gids.end(), "127.0.0.1") != view.gids.end();
  }
  report.Good("devices:" + names);
  return loopback;
}

}  // namespace

int Doctor() {
  Report report;
  const bool settings_are_right = CheckSettings(report);
  const std::string folder = LibraryFolder();
  std::string problem;
  const bool whole = CheckFiles(report, folder);
  CheckVersions(report, folder);
  CheckLibraryPath(report, folder);
  CheckWritable(report);
  if (!LibrariesPresent(folder, &problem)) report.Bad(problem, Reinstall(folder));
  if (!settings_are_right || !whole || !problem.empty()) {
    std::printf("Something is wrong; see FAIL above. Nothing else can be checked until it is repaired.\n");
    return 1;
  }
  std::string error;
  const Library verbs(folder + "/libibverbs.so.1", &error);
  if (!verbs) {
    report.Bad("libibverbs.so.1 does not load: " + error, LoadRemedy(folder, error));
    return 1;
  }
  const Library cm(folder + "/librdmacm.so.1", &error);
  if (!cm) {
    report.Bad("librdmacm.so.1 does not load: " + error, LoadRemedy(folder, error));
    return 1;
  }
  report.Good("libraries load from " + folder);
  CheckNodes(report, folder, verbs, cm);
  CheckProviders(report);
  CheckMpi(report, folder);
  CheckShadows(report, folder);
  CheckPaths(report, folder);
  CheckLimits(report);
  if (!CheckDevices(report, verbs)) {
    report.Note("no self test: 127.0.0.1 has no device");
  } else if (problem = LoopbackSelfTest(cm); problem.empty()) {
    report.Good("self test: rdma_cm listens, connects and disconnects over 127.0.0.1");
  } else {
    report.Bad("self test over 127.0.0.1: " + problem, "is lo up? WEFT_TRACE=1 weft doctor shows each step");
  }
  std::printf("%s\n", report.failures() == 0 ? "All is well." : "Something is wrong; see FAIL above.");
  return report.failures() == 0 ? 0 : 1;
}

}  // namespace weft::tool
