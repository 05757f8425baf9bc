#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>

#include "control/client.h"
#include "faults/plan.h"
#include "tools/weft/commands.h"
#include "tools/weft/words.h"

namespace weft::tool {
namespace {

constexpr size_t kWidth = 100;

std::string Wrapped(const std::string& text, const std::string& indent) {
  std::string out, line = indent;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find(' ', from), text.size());
    const std::string word = text.substr(from, end - from);
    if (line.size() + word.size() + 1 > kWidth && line.size() > indent.size()) {
      out += line + "\n";
      line = indent;
    }
    if (line.size() > indent.size()) line += ' ';
    line += word;
    from = end + 1;
  }
  return out + line + "\n";
}

std::string KeysOf(const faults::KindInfo& kind) {
  std::string keys;
  for (const bool needed : {true, false}) {
    for (const faults::KeyInfo& key : faults::AllKeys()) {
      if (!(kind.takes & key.key) || needed != static_cast<bool>(kind.needs & key.key)) continue;
      const std::string pair = std::string(key.name) + "=" + key.form;
      keys += (keys.empty() ? "" : " ") + (needed ? pair : "[" + pair + "]");
    }
  }
  return keys;
}

void PrintWords(const char* title, std::span<const faults::Word> words) {
  std::string names;
  for (const faults::Word& word : words) names += (names.empty() ? "" : " ") + std::string(word.name);
  std::printf("  %s\n%s", title, Wrapped(names, "      ").c_str());
}

int List() {
  std::printf("A specification is faults with \";\" between them; each is a kind and KEY=VALUE words. seed=NUMBER makes random faults repeatable.\n\n");
  for (const faults::KindInfo& kind : faults::AllKinds()) {
    std::printf("%s\n%s", kind.name, Wrapped(kind.what, "    ").c_str());
    std::printf("    Seen: %s", Wrapped(kind.symptom, "    ").substr(4).c_str());
    std::printf("    Keys: %s", Wrapped(KeysOf(kind), "    ").substr(4).c_str());
    if (kind.unit != nullptr) std::printf("    Counted: %s", Wrapped(kind.unit, "    ").substr(4).c_str());
    std::printf("    Example: WEFT_FAULTS='%s'\n\n", kind.example);
  }
  std::printf("Keys:\n");
  for (const faults::KeyInfo& key : faults::AllKeys()) {
    std::printf("  %s=%s\n%s", key.name, key.form, Wrapped(key.explanation, "      ").c_str());
  }
  std::printf("\nWords:\n");
  PrintWords("status=", faults::StatusWords());
  PrintWords("opcode=", faults::OpcodeWords());
  PrintWords("call=", faults::CallWords());
  PrintWords("event=", faults::EventWords());
  return 0;
}

std::string Roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '-') {
      out += "\\-";
    } else if (c == '\'' ) {
      out += "\\(aq";
    } else if (c == '\\') {
      out += "\\e";
    } else {
      out += c;
    }
  }
  return out;
}

// The part of weft-faults(7) that comes from the tables; tests/stock/faults_test.py compares.
int Manual() {
  for (const faults::KindInfo& kind : faults::AllKinds()) {
    std::printf(".TP\n.B %s\n%s\n.RS\n.PP\nSeen: %s\n.PP\nKeys: %s.\n", Roff(kind.name).c_str(), Roff(kind.what).c_str(),
                Roff(kind.symptom).c_str(), Roff(KeysOf(kind)).c_str());
    if (kind.unit != nullptr) std::printf("Counted: %s.\n", Roff(kind.unit).c_str());
    std::printf(".PP\nExample:\n.B %s\n.RE\n", Roff(kind.example).c_str());
  }
  std::printf(".SH KEYS\n");
  for (const faults::KeyInfo& key : faults::AllKeys()) {
    std::printf(".TP\n.BI %s= %s\n%s\n", Roff(key.name).c_str(), key.form, Roff(key.explanation).c_str());
  }
  return 0;
}

int Fail(const std::string& why) {
  std::fprintf(stderr, "weft faults: %s\n", why.c_str());
  return 1;
}

int Refuse(const std::string& why) {
  Fail(why);
  return kWrongCommandLine;
}

}  // namespace

int Faults(const FaultsArguments& arguments) {
  if (arguments.list && arguments.action.empty()) return List();
  if (arguments.manual) return Manual();
  const std::string& action = arguments.action;
  if (action.empty()) {
    return Refuse(arguments.pid.empty() ? "give an action: --list, check SPECIFICATION, or --pid PID with set SPECIFICATION, clear or show"
                                        : "--pid needs an action: set SPECIFICATION, clear or show");
  }
  constexpr std::string_view kKnown[] = {"set", "clear", "show", "check", "--list"};
  if (std::find(kKnown, std::end(kKnown) - 1, action) == std::end(kKnown) - 1 || arguments.list) {
    std::fprintf(stderr, "%s\n", UnknownWord("weft faults", action, kKnown).c_str());
    return kWrongCommandLine;
  }
  const bool takes_specification = action == "set" || action == "check";
  std::string text;
  for (const std::string& word : arguments.specification) text += (text.empty() ? "" : " ") + word;
  if (!takes_specification && !text.empty()) return Refuse(action + " takes nothing more, but was given \"" + text + "\"");
  if (takes_specification && text.find_first_not_of(" \t\n;") == text.npos) {
    return Refuse(action + " needs a SPECIFICATION, for example 'cut after=2s'; weft faults --list lists all kinds" +
                  (action == "set" ? ", and clear ends those that are set" : ""));
  }
  if (action != "check" && arguments.pid.empty()) return Refuse(action + " needs --pid PID; weft stat lists the processes that can be asked");
  const auto pid = ParsePid(arguments.pid);
  if (!arguments.pid.empty() && !pid) return Refuse("\"" + arguments.pid + "\" is not a process id; weft stat lists the processes that can be asked");
  if (action == "check" && pid) return Refuse("check needs no process; leave out --pid, or use set");
  std::string specification;
  if (takes_specification) {
    const auto plan = faults::ParseSetting(text);
    if (!plan.ok()) return Fail(plan.error());
    for (const faults::Fault& fault : plan->faults) specification += fault.text + "\n";
    if (plan->seed) specification += "seed=" + std::to_string(*plan->seed) + "\n";
  }
  if (action == "check") {
    std::printf("%s", specification.c_str());
    return 0;
  }
  const auto answer = control::Ask(*pid, "faults " + action, specification);
  if (!answer.ok()) return Fail(answer.error());
  std::printf("%s", answer->text.c_str());
  return 0;
}

}  // namespace weft::tool
