#ifndef VERBS_TESTING_SHOWN_H_
#define VERBS_TESTING_SHOWN_H_

// What `weft stat` shows about a queue pair, for tests that wait for something that no verb reports.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "control/client.h"

namespace weft::verbs::testing {

// The value of `key` ("rnr", "wire" ...; docs/man/weft-stat.1) for a queue pair of this process; empty: not shown.
inline std::string Shown(const ibv_qp* qp, const std::string& key) {
  const auto reply = control::Ask(getpid(), "stat");
  if (!reply.ok()) return {};
  char number[32];
  std::snprintf(number, sizeof number, "qp\tqp=0x%x\t", qp->qp_num);
  const std::string& text = reply->text;
  const size_t line = text.find(number);
  if (line == std::string::npos) return {};
  const size_t end = std::min(text.find('\n', line), text.size());
  const size_t at = text.find("\t" + key + "=", line);
  if (at >= end) return {};
  const size_t value = at + key.size() + 2;
  return text.substr(value, std::min(text.find('\t', value), end) - value);
}

inline ::testing::AssertionResult AwaitShown(const ibv_qp* qp, const std::string& key, const std::function<bool(const std::string&)>& wanted) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::string value;
  while (!wanted(value = Shown(qp, key))) {
    if (std::chrono::steady_clock::now() > limit) return ::testing::AssertionFailure() << key << " is '" << value << "' after 20 s";
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return ::testing::AssertionSuccess();
}

// Waits until the receiver was not ready for a request of `qp`, the request was sent again, and the receiver was not
// ready again.
inline ::testing::AssertionResult AwaitRefusals(const ibv_qp* qp) {
  return AwaitShown(qp, "rnr", [](const std::string& count) { return std::atoi(count.c_str()) >= 2; });
}

// Waits until `qp` knows that its connection has ended.
inline ::testing::AssertionResult AwaitDisconnection(const ibv_qp* qp) {
  return AwaitShown(qp, "wire", [](const std::string& wire) { return wire.empty(); });
}

}  // namespace weft::verbs::testing

#endif  // VERBS_TESTING_SHOWN_H_
