#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/client.h"
#include "tools/weft/commands.h"
#include "tools/weft/words.h"

namespace weft::tool {
namespace {

constexpr double kShortestInterval = 0.01, kLongestInterval = 3600;  // seconds

using Row = std::map<std::string, std::string>;

// What a process answered, and when.
struct Look {
  Row process;
  std::vector<Row> queue_pairs;
  std::vector<Row> paths;  // of wires that may have several to a peer
  double at = 0;
};

double Seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// KEY=VALUE with tabs between, behind a word.
Look ParseLook(const std::string& text) {
  Look look;
  look.at = Seconds();
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    Row row;
    size_t at = std::min(text.find('\t', from), end);
    const std::string kind = text.substr(from, at - from);
    while (at < end) {
      const size_t next = std::min(text.find('\t', at + 1), end);
      const size_t equals = text.find('=', at);
      if (equals < next) row[text.substr(at + 1, equals - at - 1)] = text.substr(equals + 1, next - equals - 1);
      at = next;
    }
    if (kind == "process") look.process = std::move(row);
    if (kind == "qp") look.queue_pairs.push_back(std::move(row));
    if (kind == "path") look.paths.push_back(std::move(row));
    from = end + 1;
  }
  return look;
}

std::optional<Look> LookAt(int pid) {
  const auto answer = control::Ask(pid, "stat");
  if (answer.ok()) return ParseLook(answer->text);
  std::fprintf(stderr, "weft stat: %s\n", answer.error().c_str());
  return std::nullopt;
}

double Number(const Row& row, const char* key) {
  const auto found = row.find(key);
  return found == row.end() ? 0 : std::strtod(found->second.c_str(), nullptr);
}
std::string Text(const Row& row, const char* key) {
  const auto found = row.find(key);
  return found == row.end() ? "" : found->second;
}

// Per second, since the look before; a queue pair that was not there then began at zero.
double Rate(const Look& before, const Look& now, const Row& row, const char* key) {
  double then = 0;
  for (const Row& old : before.queue_pairs) {
    if (Text(old, "qp") == Text(row, "qp") && Number(old, key) <= Number(row, key)) then = Number(old, key);
  }
  const double seconds = now.at - before.at;
  return seconds <= 0 ? 0 : (Number(row, key) - then) / seconds;
}

std::string Amount(double value) {
  constexpr const char* kUnits[] = {"", "k", "M", "G", "T"};
  size_t unit = 0;
  while (value >= 10000 && unit + 1 < std::size(kUnits)) value /= 1000, ++unit;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 || value >= 100 ? "%.0f%s" : "%.1f%s", value, kUnits[unit]);
  return text;
}

void PrintTable(const Look& before, const Look& now) {
  std::printf("%s (%s), persona %s, %zu queue pairs\n", Text(now.process, "program").c_str(), Text(now.process, "pid").c_str(),
              Text(now.process, "persona").c_str(), now.queue_pairs.size());
  std::printf("%8s %-4s %-5s %-22s %-4s %17s %17s %8s %8s %8s %8s %7s %6s %6s\n", "QP", "TYPE", "STATE", "PEER", "WIRE", "SENDS done/posted",
              "RECVS done/posted", "SENT B", "RCVD B", "B/s out", "B/s in", "RETRIES", "RNR", "ERRORS");
  for (const Row& qp : now.queue_pairs) {
    const auto pair = [&](const char* done, const char* posted) { return Amount(Number(qp, done)) + "/" + Amount(Number(qp, posted)); };
    std::printf("%8s %-4s %-5s %-22s %-4s %17s %17s %8s %8s %8s %8s %7s %6s %6s\n", Text(qp, "qp").c_str(), Text(qp, "type").c_str(),
                Text(qp, "state").c_str(), Text(qp, "peer").empty() ? "-" : Text(qp, "peer").c_str(),
                Text(qp, "wire").empty() ? "-" : Text(qp, "wire").c_str(), pair("sends_completed", "sends_posted").c_str(), pair("receives_completed", "receives_posted").c_str(),
                Amount(Number(qp, "bytes_sent")).c_str(), Amount(Number(qp, "bytes_received")).c_str(),
                Amount(Rate(before, now, qp, "bytes_sent")).c_str(), Amount(Rate(before, now, qp, "bytes_received")).c_str(),
                Amount(Number(qp, "retries")).c_str(), Amount(Number(qp, "rnr")).c_str(), Amount(Number(qp, "errors")).c_str());
  }
}

void PrintPaths(const Look& look) {
  if (look.paths.empty()) return;
  std::printf("\n%11s %-28s %-11s %7s %9s %6s %8s %8s %8s %8s %8s\n", "ASSOCIATION", "PATH TO", "STATE", "RTT ms", "WINDOW", "MTU", "SENT pkt",
              "SENT B", "RCVD pkt", "RCVD B", "FAILURES");
  for (const Row& path : look.paths) {
    std::printf("%11s %-28s %-11s %7s %9s %6s %8s %8s %8s %8s %8s\n", Text(path, "association").c_str(), Text(path, "peer").c_str(),
                (Text(path, "state") + (Text(path, "primary") == "1" ? "*" : "")).c_str(), Text(path, "rtt_ms").c_str(),
                Amount(Number(path, "congestion_window")).c_str(), Text(path, "mtu").c_str(), Amount(Number(path, "packets_sent")).c_str(),
                Amount(Number(path, "bytes_sent")).c_str(), Amount(Number(path, "packets_received")).c_str(),
                Amount(Number(path, "bytes_received")).c_str(), Text(path, "failures").c_str());
  }
  std::printf("* primary path\n");
}

std::string JsonString(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", c);
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

bool IsNumber(const std::string& key) {
  return key != "type" && key != "state" && key != "device" && key != "peer" && key != "wire" && key != "program" && key != "persona";
}

std::string Json(const Row& row) {
  std::string out;
  for (const auto& [key, value] : row) {
    // JSON has no hexadecimal numbers.
    const std::string number = value.starts_with("0x") ? std::to_string(std::strtoull(value.c_str(), nullptr, 16)) : value;
    out += (out.empty() ? "" : ", ") + JsonString(key) + ": " + (IsNumber(key) && !value.empty() ? number : JsonString(value));
  }
  return out;
}

void PrintJson(const Look& before, const Look& now) {
  std::printf("{%s, \"queue_pairs\": [", Json(now.process).c_str());
  bool first = true;
  for (const Row& qp : now.queue_pairs) {
    std::printf("%s\n  {%s", first ? "" : ",", Json(qp).c_str());
    for (const char* key : {"sends_completed", "receives_completed", "bytes_sent", "bytes_received"}) {
      std::printf(", \"%s_per_second\": %.1f", key, Rate(before, now, qp, key));
    }
    std::printf("}");
    first = false;
  }
  std::printf("%s]", first ? "" : "\n");
  first = true;
  for (const Row& path : now.paths) {
    std::printf("%s{%s}", first ? ", \"paths\": [\n  " : ",\n  ", Json(path).c_str());
    first = false;
  }
  std::printf("%s}\n", first ? "" : "\n]");
}

void Sleep(double seconds) {
  timespec time{.tv_sec = static_cast<time_t>(seconds), .tv_nsec = 0};
  time.tv_nsec = static_cast<long>((seconds - static_cast<double>(time.tv_sec)) * 1e9);
  nanosleep(&time, nullptr);
}

int ListProcesses(bool json) {
  bool any = false;
  if (json) std::printf("[");
  for (const pid_t pid : control::Processes()) {
    const auto answer = control::Ask(pid, "stat");
    if (!answer.ok()) continue;  // of another user, or gone
    const Look look = ParseLook(answer->text);
    if (json) {
      std::printf("%s{%s, \"queue_pairs\": %zu}", any ? ", " : "", Json(look.process).c_str(), look.queue_pairs.size());
    } else {
      if (!any) std::printf("%8s %-16s %-8s %s\n", "PID", "PROGRAM", "PERSONA", "QUEUE PAIRS");
      std::printf("%8d %-16s %-8s %zu\n", static_cast<int>(pid), Text(look.process, "program").c_str(),
                  Text(look.process, "persona").c_str(), look.queue_pairs.size());
    }
    any = true;
  }
  if (json) {
    std::printf("]\n");
  } else if (!any) {
    std::printf("No process of yours uses an RDMA device of Weft now.\n");
  }
  return 0;
}

}  // namespace

int Stat(const StatArguments& arguments) {
  const auto refuse = [](const std::string& why) {
    std::fprintf(stderr, "weft stat: %s\n", why.c_str());
    return kWrongCommandLine;
  };
  double interval = 0;
  const std::string& text = arguments.interval;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), interval);
  if (error != std::errc() || end != text.data() + text.size() || !(interval >= kShortestInterval && interval <= kLongestInterval)) {
    return refuse("--interval: \"" + text + "\" is not a number of seconds from 0.01 to 3600");
  }
  const bool json = arguments.json;
  if (arguments.pid.empty()) return ListProcesses(json);
  const auto pid = ParsePid(arguments.pid);
  if (!pid) return refuse("\"" + arguments.pid + "\" is not a process id; weft stat alone lists the processes that can be asked");
  auto before = LookAt(*pid);
  if (!before) return 1;
  const bool once = json || isatty(STDOUT_FILENO) == 0;
  if (once) interval = std::min(interval, 0.5);
  for (;;) {
    Sleep(interval);
    auto now = LookAt(*pid);
    if (!now) return once ? 1 : 0;
    if (json) {
      PrintJson(*before, *now);
    } else {
      if (!once) std::printf("\033[H\033[2J");
      PrintTable(*before, *now);
      PrintPaths(*now);
    }
    std::fflush(stdout);
    if (once) return 0;
    before = std::move(now);
  }
}

}  // namespace weft::tool
