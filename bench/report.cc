#include "bench/report.h"

#include <cstdarg>
#include <cstdio>

namespace weft::bench {
namespace {

[[gnu::format(printf, 1, 2)]] std::string Format(const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

// Three digits or so, whatever the size.
std::string Figure(double value) {
  return Format(value >= 100 ? "%.0f" : value >= 10 ? "%.1f" : value >= 1 ? "%.2f" : "%.3f", value);
}

std::string ToText(const Row& row) {
  std::string text = Format("  %-34s %10s %10s %8s", row.name.c_str(), Figure(row.raw).c_str(),
                            Figure(row.weft).c_str(), row.ratio > 0 ? Format("%.2f", row.ratio).c_str() : "-");
  if (!row.note.empty()) text += "   " + row.note;
  return text + "\n";
}

std::string ToText(const Target& target) {
  return Format("  %s: %.2f%s (target %s %g) %s\n", target.name.c_str(), target.value, target.unit.c_str(),
                target.at_most ? "<=" : ">=", target.limit, IsReached(target) ? "ok" : "MISSED");
}

}  // namespace

bool IsReached(const Target& target) {
  return target.at_most ? target.value <= target.limit : target.value >= target.limit;
}

void Report::Add(const std::string& section, Row row) {
  if (!rows_.contains(section)) sections_.push_back(section);
  rows_[section].push_back(std::move(row));
}

std::string Report::ToString() const {
  std::string text;
  for (const std::string& section : sections_) {
    text += Format("\n%-36s %10s %10s %8s\n", section.c_str(), "raw TCP", "Weft", "ratio");
    for (const Row& row : rows_.at(section)) text += ToText(row);
  }
  if (!targets_.empty()) text += "\nTargets\n";
  for (const Target& target : targets_) text += ToText(target);
  if (!failures_.empty()) text += "\nNot measured\n";
  for (const std::string& failure : failures_) text += "  " + failure + "\n";
  return text;
}

}  // namespace weft::bench
