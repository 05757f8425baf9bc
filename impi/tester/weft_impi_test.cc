// weft-impi-test: whether an implementation of IMPI 0.0 does as the specification says.
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/version.h"
#include "impi/tester/report.h"
#include "impi/tester/run/options.h"
#include "impi/tester/run/page_server.h"
#include "impi/tester/run/stage.h"
#include "impi/tester/run/verdict.h"
#include "impi/tester/script.h"

namespace {

using namespace weft::impi::tester;
using Words = std::vector<std::string>;
constexpr int kWrong = 2;  // exit status for a wrong command line or script

std::atomic<int> g_stopped = 0;  // by a signal; the page has a thread that looks

// The implementation under test has a process group of its own: a signal to this program has to end it, too.
void EndOnSignals() {
  struct sigaction action {};
  action.sa_handler = [](int) { g_stopped = 1; };
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
}

int Complain(const std::string& text) {
  std::fprintf(stderr, "weft-impi-test: %s\n", text.c_str());
  return kWrong;
}

// The files of `names`: folders stand for the scripts in them, by name.
weft::Result<Words, std::string> FilesOf(const Words& names) {
  Words files;
  for (const std::string& name : names) {
    std::error_code error;
    if (!std::filesystem::is_directory(name, error)) {
      files.push_back(name);
      continue;
    }
    Words inside;
    for (std::filesystem::directory_iterator at(name, error), end; !error && at != end; at.increment(error)) {
      if (at->path().extension() == ".script") inside.push_back(at->path().string());
    }
    if (error) return "the folder '" + name + "' cannot be read: " + error.message();
    if (inside.empty()) return "the folder '" + name + "' has no files *.script";
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

weft::Result<std::vector<Script>, std::string> ReadScripts(const Options& options) {
  const auto files = FilesOf(options.scripts);
  if (!files.ok()) return files.error();
  std::vector<Script> scripts;
  for (const std::string& file : *files) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) return "the script '" + file + "' cannot be read";
    std::string text(Script::kLongest + 1, '\0');
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(stream.gcount()));
    auto script = ParseScript(file, text);
    if (!script.ok()) return TextOf(script.error());
    const bool named = std::find(options.scripts.begin(), options.scripts.end(), file) != options.scripts.end();
    if (script->target == options.target) {
      scripts.push_back(std::move(script).value());
    } else if (named) {
      return "the script '" + file + "' is for another target; say weft-impi-test " +
             (options.target == Target::kServer ? "client" : "server");
    }
  }
  if (scripts.empty()) return std::string("none of these scripts is for this target");
  if (!options.subject.server.empty() && scripts.size() != 1)
    return std::string("a server that runs already serves one job: give one script");
  std::stable_sort(scripts.begin(), scripts.end(),
                   [](const Script& a, const Script& b) { return ClauseBefore(a.clause, b.clause); });
  return scripts;
}

int Run(const Options& options) {
  const auto scripts = ReadScripts(options);
  if (!scripts.ok()) return Complain(scripts.error());
  const auto say = [](const std::string& text) {
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  };
  EndOnSignals();
  if (options.page) {
    const std::string why = ServePage(
        *scripts, options.subject, *options.page, [] { return g_stopped != 0; }, say);
    return why.empty() ? 0 : Complain(why);
  }
  std::vector<Outcome> outcomes;
  for (const Script& script : *scripts) {
    const Verdict verdict = RunScript(script, options.subject, say, [](size_t) { return g_stopped == 0; });
    std::fputs(TextOf(script, verdict, options.traces).c_str(), stdout);
    std::fflush(stdout);
    outcomes.push_back({script.clause, verdict.passed});
    if (g_stopped != 0) return 1;
  }
  std::printf("\n%s", Summary(outcomes).c_str());
  return std::all_of(outcomes.begin(), outcomes.end(), [](const Outcome& outcome) { return outcome.passed; }) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  const Words words(argv + 1, argv + argc);
  const std::string first = words.empty() ? "" : words[0];
  if (first == "-help" || first == "--help" || first == "-h") return std::fputs(Help().c_str(), stdout) < 0;
  if (first == "-version" || first == "--version" || first == "-V")
    return std::printf("weft-impi-test (Weft) %s\n", std::string(weft::Version()).c_str()) < 0;
  const auto options = ParseOptions(words);
  return options.ok() ? Run(*options) : Complain(options.error());
}
