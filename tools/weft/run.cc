#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/settings.h"
#include "tools/weft/commands.h"
#include "tools/weft/libraries.h"
#include "tools/weft/program.h"
#include "tools/weft/words.h"

namespace weft::tool {
namespace {

constexpr int kUnusable = 125;
constexpr int kCannotExecute = 126;
constexpr int kNotFound = 127;

// AddressSanitizer refuses to start a program before whose runtime another library is preloaded. Ours needs the C library only and
// calls on to the runtime's functions.
constexpr const char* kAnyPreloadOrder = "verify_asan_link_order=0";

std::string ShellWord(const std::string& text) {
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// What a program's name that was not found may have been meant to be, as the rest of a sentence; or empty.
std::string MeantProgram(const std::string& name) {
  if (name.starts_with('-')) return "; weft run takes no options: settings are environment variables, which weft settings lists";
  if (const std::string setting = MisplacedSetting(name); !setting.empty()) return "; " + setting;
  if (name.find('/') == std::string::npos && !FindProgram("./" + name).empty()) return ", but in this folder: weft run ./" + name;
  return "";
}

}  // namespace

int Run(const std::vector<std::string>& command) {
  const std::vector<std::string> problems = SettingProblems();
  for (const std::string& problem : problems) std::fprintf(stderr, "weft run: %s\n", problem.c_str());
  if (!problems.empty()) return kUnusable;
  std::vector<std::string> reported;
  const weft::Settings settings = weft::Settings::FromEnvironment(&reported);
  if (command.empty() || command[0].empty()) {
    std::fprintf(stderr, "weft run: no program given. Usage: weft run [--] PROGRAM [ARGS...]\n");
    return kUnusable;
  }
  const std::string folder = LibraryFolder();
  std::string problem;
  if (!LibrariesPresent(folder, &problem)) {
    std::fprintf(stderr, "weft run: %s\n", problem.c_str());
    return kUnusable;
  }
  setenv("LD_LIBRARY_PATH", LibraryPathWith(folder).c_str(), 1);
  if (const std::string paths = PathsLibrary(folder); settings.paths && !paths.empty()) {
    setenv("LD_PRELOAD", PreloadWith(paths).c_str(), 1);
    const char* options = std::getenv("ASAN_OPTIONS");
    setenv("ASAN_OPTIONS", ((options == nullptr || *options == '\0' ? "" : std::string(options) + ":") + kAnyPreloadOrder).c_str(), 1);
  }

  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  if (const std::string file = FindProgram(command[0]); !file.empty()) {
    if (const std::string why = WhyLibrariesAreIgnored(file); !why.empty()) {
      std::fprintf(stderr, "weft run: %s %s: it does not load Weft's libraries, so it sees only the machine's own RDMA devices\n",
                   file.c_str(), why.c_str());
    }
  }
  execvp(argv[0], argv.data());

  const int error = errno;
  const bool has_slash = command[0].find('/') != std::string::npos;
  if (error == ENOENT) {
    std::fprintf(stderr, "weft run: %s: %s%s\n", argv[0],
                 has_slash ? "no such program, or its interpreter is missing" : "not found in PATH", MeantProgram(command[0]).c_str());
    return kNotFound;
  }
  struct stat file{};
  const bool found = stat(argv[0], &file) == 0;
  const char* const why = found && S_ISDIR(file.st_mode)                           ? "it is a folder"
                          : error == EACCES && found && (file.st_mode & 0111) == 0 ? "it has no execute permission (chmod +x)"
                                                                                   : std::strerror(error);
  std::fprintf(stderr, "weft run: %s: cannot execute: %s\n", argv[0], why);
  return kCannotExecute;
}

int Env() {
  for (const std::string& problem : SettingProblems()) std::fprintf(stderr, "weft env: %s\n", problem.c_str());
  const std::string folder = LibraryFolder();
  std::string problem;
  if (!LibrariesPresent(folder, &problem)) {
    std::fprintf(stderr, "weft env: %s\n", problem.c_str());
    return kUnusable;
  }
  std::printf("LD_LIBRARY_PATH=%s\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"\nexport LD_LIBRARY_PATH\n", ShellWord(folder).c_str());
  std::vector<std::string> problems;
  if (const std::string paths = PathsLibrary(folder); weft::Settings::FromEnvironment(&problems).paths && !paths.empty()) {
    const std::string word = ShellWord(paths);
    std::printf("case \":$LD_PRELOAD:\" in *:%s:*) ;; *) LD_PRELOAD=\"${LD_PRELOAD:+$LD_PRELOAD:}\"%s; esac\nexport LD_PRELOAD\n",
                word.c_str(), word.c_str());
    std::printf("case \":$ASAN_OPTIONS:\" in *:%s:*) ;; *) ASAN_OPTIONS=\"${ASAN_OPTIONS:+$ASAN_OPTIONS:}%s\"; esac\nexport ASAN_OPTIONS\n",
                kAnyPreloadOrder, kAnyPreloadOrder);
  }
  return 0;
}

}  // namespace weft::tool
