#include "bench/worker_pair.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <string_view>

extern char** environ;

namespace weft::bench {
namespace {

constexpr int kAnswerTimeoutMs = 30000;

Sample Both(const Message& initiator, const Message& responder) {
  Sample sample = Sample::From(initiator);
  const Sample other = Sample::From(responder);
  sample.cpu += other.cpu;
  sample.context_switches += other.context_switches;
  return sample;
}

// Ours with the settings of `environment` in place of those of the same name.
std::vector<char*> MergedEnvironment(const std::vector<std::string>& environment) {
  const auto replaced = [&environment](std::string_view ours) {
    return std::any_of(environment.begin(), environment.end(), [ours](const std::string& setting) {
      return ours.starts_with(std::string_view(setting).substr(0, setting.find('=') + 1));
    });
  };
  std::vector<char*> merged;
  for (const std::string& setting : environment) merged.push_back(const_cast<char*>(setting.c_str()));
  for (char** setting = environ; *setting != nullptr; ++setting) {
    if (!replaced(*setting)) merged.push_back(*setting);
  }
  merged.push_back(nullptr);
  return merged;
}

// The first of two that has something to say, be it that it is gone. Failure: neither in time.
WorkerProcess& FirstToAnswer(WorkerProcess& one, WorkerProcess& other) {
  pollfd waiting[] = {{.fd = one.fd(), .events = POLLIN, .revents = 0},
                      {.fd = other.fd(), .events = POLLIN, .revents = 0}};
  const int ready = poll(waiting, 2, kAnswerTimeoutMs);
  if (ready < 0) Fail("poll", errno);
  if (ready == 0) {
    throw Failure("no answer of either worker in " + std::to_string(kAnswerTimeoutMs / 1000) + " s; their states are " +
                  one.State() + " and " + other.State());
  }
  return waiting[0].revents != 0 ? one : other;
}

}  // namespace

WorkerProcess::WorkerProcess(const std::vector<std::string>& options, const std::vector<std::string>& environment) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) Fail("socketpair", errno);
  control_ = std::make_unique<ControlChannel>(ends[0]);
  std::vector<std::string> words = {"bench", "--control-fd=" + std::to_string(ends[1])};
  words.insert(words.end(), options.begin(), options.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<char*> merged = MergedEnvironment(environment);
  pid_ = fork();
  if (pid_ == 0) {
    fcntl(ends[1], F_SETFD, 0);
    execve("/proc/self/exe", arguments.data(), merged.data());
    _exit(127);
  }
  const int error = errno;
  close(ends[1]);
  if (pid_ < 0) Fail("fork", error);
}

WorkerProcess::~WorkerProcess() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

Message WorkerProcess::Receive() {
  std::optional<Message> answer = control_->Receive(kAnswerTimeoutMs);
  if (!answer) throw Failure("a worker process ended unexpectedly");
  if (answer->verb() == "error") throw Failure(answer->Text("text"));
  return *std::move(answer);
}

char WorkerProcess::State() const {
  std::ifstream stat("/proc/" + std::to_string(pid_) + "/stat");
  std::string pid, name, state;
  stat >> pid >> name >> state;
  return state.empty() ? '?' : state[0];
}

Message WorkerProcess::Call(const Message& order) {
  Send(order);
  return Receive();
}

void WorkerPair::Start() {
  if (initiator_) return;
  responder_ = StartEnd(1);
  initiator_ = StartEnd(0);
}

std::unique_ptr<WorkerProcess> WorkerPair::StartEnd(int half) const {
  std::vector<std::string> options = {"--worker=" + kind_};
  if (pinned_) options.push_back("--half=" + std::to_string(half));
  return std::make_unique<WorkerProcess>(options, environment_);
}

double WorkerPair::Open(const Shape& initiator, const Shape& responder) {
  Start();
  Message listen("listen"), connect("connect");
  responder.AddTo(&listen);
  initiator.AddTo(&connect);
  const int64_t port = responder_->Call(listen).Integer("port");
  responder_->Send(Message("accept"));
  initiator_->Send(connect.Set("port", port));
  return ReceiveBoth().first.Real("elapsed");
}

void WorkerPair::Close() { CallBoth(Message("close")); }

Sample WorkerPair::Run(const Job& job) {
  Message order("run");
  job.AddTo(&order);
  responder_->Send(order.Set("initiator", int64_t{0}));
  initiator_->Send(order.Set("initiator", int64_t{1}));
  const auto [initiator, responder] = ReceiveBoth();
  return Both(initiator, responder);
}

Sample WorkerPair::Idle(double seconds) {
  const auto [initiator, responder] = CallBoth(Message("idle").Set("seconds", seconds));
  return Both(initiator, responder);
}

std::pair<int64_t, int64_t> WorkerPair::Resident() {
  const auto [initiator, responder] = CallBoth(Message("memory"));
  return {initiator.Integer("resident"), responder.Integer("resident")};
}

std::string WorkerPair::VerbsLibrary() {
  Start();
  return initiator_->Call(Message("hello")).Text("library");
}

void WorkerPair::Reset() {
  initiator_.reset();
  responder_.reset();
}

std::pair<Message, Message> WorkerPair::CallBoth(const Message& order) {
  responder_->Send(order);
  initiator_->Send(order);
  return ReceiveBoth();
}

std::pair<Message, Message> WorkerPair::ReceiveBoth() {
  // An end that failed is heard even while the other still waits for it.
  if (&FirstToAnswer(*initiator_, *responder_) == initiator_.get()) {
    Message initiator = initiator_->Receive();
    return {std::move(initiator), responder_->Receive()};
  }
  Message responder = responder_->Receive();
  return {initiator_->Receive(), std::move(responder)};
}

}  // namespace weft::bench
