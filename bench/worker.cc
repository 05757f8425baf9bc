#include "bench/worker.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include <cerrno>
#include <csignal>

#include "bench/control_channel.h"
#include "bench/endpoint.h"
#include "bench/own_process.h"

namespace weft::bench {
namespace {

// Adds to a sample what the process used between construction and Stop.
class Usage {
 public:
  Usage() : start_(Now()) {}
  void Stop(Sample* sample) const {
    const rusage end = Now();
    sample->cpu = Cpu(end) - Cpu(start_);
    sample->context_switches = Switches(end) - Switches(start_);
  }

 private:
  static rusage Now() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage;
  }
  static double Cpu(const rusage& usage) {
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  static int64_t Switches(const rusage& usage) { return usage.ru_nvcsw + usage.ru_nivcsw; }

  const rusage start_;
};

void Idle(double seconds) {
  timespec left{};
  left.tv_sec = static_cast<time_t>(seconds);
  left.tv_nsec = static_cast<long>((seconds - static_cast<double>(left.tv_sec)) * 1e9);
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

std::string VerbsLibrary() {
  Dl_info info{};
  return dladdr(reinterpret_cast<void*>(&ibv_get_device_list), &info) != 0 ? info.dli_fname : "unknown";
}

Message Obey(Endpoint& endpoint, const Message& order) {
  Message answer("ok");
  const Clock::time_point start = Clock::now();
  if (order.verb() == "hello") {
    answer.Set("library", VerbsLibrary());
  } else if (order.verb() == "listen") {
    answer.Set("port", int64_t{endpoint.Listen(Shape::From(order))});
  } else if (order.verb() == "accept") {
    endpoint.Accept();
    answer.Set("elapsed", Seconds(Clock::now() - start));
  } else if (order.verb() == "connect") {
    endpoint.Connect(Shape::From(order), static_cast<uint16_t>(order.Integer("port")));
    answer.Set("elapsed", Seconds(Clock::now() - start));
  } else if (order.verb() == "close") {
    endpoint.Close();
  } else if (order.verb() == "memory") {
    answer.Set("resident", ResidentBytes());
  } else if (order.verb() == "run") {
    const Job job = Job::From(order);
    const Role role = order.Integer("initiator") != 0 ? Role::kInitiator : Role::kResponder;
    const Usage usage;
    Sample sample = job.ping_pong ? endpoint.PingPong(role, job) : endpoint.OneWay(role, job);
    usage.Stop(&sample);
    sample.AddTo(&answer);
  } else if (order.verb() == "idle") {
    Sample sample;
    const Usage usage;
    Idle(order.Real("seconds"));
    usage.Stop(&sample);
    sample.AddTo(&answer);
  } else {
    throw Failure("unknown order " + order.verb());
  }
  return answer;
}

}  // namespace

int RunWorker(const std::string& kind, int control_fd) {
  // Nothing outlives a driver that was killed.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  RaiseFileLimit();
  ControlChannel control(control_fd);
  try {
    const std::unique_ptr<Endpoint> endpoint = kind == "raw" ? MakeRawTcpEndpoint() : MakeVerbsEndpoint();
    while (const std::optional<Message> order = control.Receive()) control.Send(Obey(*endpoint, *order));
    return 0;
  } catch (const Failure& failure) {
    control.Send(Message("error").Set("text", failure.what()));
    // Not by way of destructors: what failed may hang in them too.
    _exit(1);
  }
}

}  // namespace weft::bench
