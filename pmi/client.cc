#include "pmi/client.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/host_port.h"
#include "pmi/message.h"

namespace weft::pmi {
namespace {

PmiError Failure(std::string message) { return PmiError{std::move(message)}; }

std::string Quoted(const char* name, const std::string& value) { return std::string(name) + "=" + value; }

// The connection to the launcher; owns the descriptor.
class Wire {
 public:
  explicit Wire(int fd) : fd_(fd) {}
  ~Wire() { close(fd_); }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  int fd() const { return fd_; }

  // Empty, or why it failed.
  std::string Send(const Message& message) {
    const std::string bytes = message.Serialize();
    for (size_t done = 0; done < bytes.size();) {
      ssize_t count = send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (count < 0 && errno == ENOTSOCK) count = write(fd_, bytes.data() + done, bytes.size() - done);
      if (count >= 0) {
        done += static_cast<size_t>(count);
      } else if (errno == EAGAIN) {
        Await(POLLOUT);
      } else if (errno != EINTR) {
        return "cannot send cmd=" + message.command + " to the launcher: " + std::strerror(errno);
      }
    }
    return {};
  }

  // The next message, which must be `command`.
  Result<Message, PmiError> Receive(const std::string& command) {
    for (;;) {
      if (std::optional<Message> message = reader_.Next()) {
        if (message->command == command) return *std::move(message);
        return Failure("the launcher answered '" + Printable(message->Serialize()) + "' where cmd=" + command +
                       " belongs");
      }
      if (!reader_.error().empty()) return Failure("the launcher sent " + reader_.error());
      char block[4096];
      const ssize_t count = read(fd_, block, sizeof(block));
      if (count > 0) {
        reader_.Append({block, static_cast<size_t>(count)});
      } else if (count == 0) {
        return Failure("the launcher closed its connection before it sent cmd=" + command);
      } else if (errno == EAGAIN) {
        Await(POLLIN);
      } else if (errno != EINTR) {
        return Failure("cannot receive cmd=" + command + " from the launcher: " + std::strerror(errno));
      }
    }
  }

  Result<Message, PmiError> Ask(const Message& question, const std::string& answer) {
    if (std::string problem = Send(question); !problem.empty()) return Failure(std::move(problem));
    return Receive(answer);
  }

 private:
  void Await(short events) {
    pollfd entry{fd_, events, 0};
    poll(&entry, 1, -1);
  }

  const int fd_;
  MessageReader reader_;
};

class Singleton final : public Client {
 public:
  bool is_singleton() const override { return true; }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int appnum() const override { return -1; }
  int universe_size() const override { return -1; }
  const std::string& kvs_name() const override { return name_; }
  size_t max_value_length() const override { return kValueMax - 1; }
  int fd() const override { return -1; }

  std::string Put(const std::string& key, const std::string& value) override {
    values_[key] = value;
    return {};
  }
  Result<std::string, PmiError> Get(const std::string& key) override {
    const auto found = values_.find(key);
    if (found == values_.end()) return Failure("no process put the key " + key);
    return found->second;
  }
  std::string Barrier() override { return {}; }
  std::string Finalize() override { return {}; }
  void Abort(int, const std::string&) override {}

 private:
  const std::string name_ = "singleton_" + std::to_string(getpid());
  std::map<std::string, std::string> values_;
};

// A connected descriptor, or why there is none.
Result<int, PmiError> Dial(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return Failure("PMI_PORT names the host " + host + ", which cannot be resolved: " + gai_strerror(error));
  }
  int last_error = ECONNREFUSED;
  int fd = -1;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    fd = socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, entry->ai_addr, entry->ai_addrlen) == 0) break;
    last_error = errno;
    if (fd >= 0) close(fd);
    fd = -1;
  }
  freeaddrinfo(found);
  if (fd < 0) return Failure("cannot connect to PMI_PORT=" + host + ":" + port + ": " + std::strerror(last_error));
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return fd;
}

class Connection final : public Client {
 public:
  Connection(int fd, int rank, int size) : wire_(fd), rank_(rank), size_(size) {}

  // PMI_PORT's first words: who we are, and the answer: an initack, then size, rank and debug, each a cmd=set.
  std::string Introduce(int pmi_id) {
    auto answer = wire_.Ask(Message{"initack"}.Add("pmiid", pmi_id), "initack");
    if (!answer) return answer.error().message;
    for (auto [name, place] : {std::pair{"size", &size_}, {"rank", &rank_}, {"debug", &debug_}}) {
      auto set = wire_.Receive("set");
      if (!set) return set.error().message;
      const std::optional<int> value = set->FindInt(name);
      if (!value)
        return std::string("the launcher sent '") + Printable(set->Serialize()) + "' where " + name + "= belongs";
      *place = *value;
    }
    return {};
  }

  std::string Initialise() {
    if (size_ < 1 || rank_ < 0 || rank_ >= size_) {
      return "the launcher made this process rank " + std::to_string(rank_) + " of " + std::to_string(size_);
    }
    auto ready = wire_.Ask(Message{"init"}.Add("pmi_version", 1).Add("pmi_subversion", 1), "response_to_init");
    if (!ready) return ready.error().message;
    if (ready->FindInt("rc").value_or(0) != 0) {
      return "the launcher refuses PMI version 1: '" + Printable(ready->Serialize()) + "'";
    }
    std::string problem = ReadMaxes();
    if (problem.empty()) problem = ReadNumber("get_appnum", "appnum", "appnum", &appnum_);
    if (problem.empty()) problem = ReadNumber("get_universe_size", "universe_size", "size", &universe_size_);
    if (problem.empty()) problem = ReadKvsName();
    return problem;
  }

  bool is_singleton() const override { return false; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int appnum() const override { return appnum_; }
  int universe_size() const override { return universe_size_; }
  const std::string& kvs_name() const override { return kvs_name_; }
  size_t max_value_length() const override { return static_cast<size_t>(value_max_ - 1); }
  int fd() const override { return wire_.fd(); }

  std::string Put(const std::string& key, const std::string& value) override {
    if (std::string problem = CheckWord("key", key, static_cast<size_t>(key_max_ - 1)); !problem.empty())
      return problem;
    if (std::string problem = CheckWord("value", value, max_value_length()); !problem.empty()) return problem;
    if (key.find('=') != std::string::npos) return "the PMI key " + Printable(key) + " contains '='";
    auto done = wire_.Ask(Message{"put"}.Add("kvsname", kvs_name_).Add("key", key).Add("value", value), "put_result");
    if (!done) return done.error().message;
    if (done->FindInt("rc").value_or(0) != 0) return "the launcher refuses the key " + key + Reason(*done);
    return {};
  }

  Result<std::string, PmiError> Get(const std::string& key) override {
    if (std::string problem = CheckWord("key", key, static_cast<size_t>(key_max_ - 1)); !problem.empty()) {
      return Failure(std::move(problem));
    }
    auto done = wire_.Ask(Message{"get"}.Add("kvsname", kvs_name_).Add("key", key), "get_result");
    if (!done) return done.error();
    if (done->FindInt("rc").value_or(0) != 0) return Failure("no process put the key " + key + Reason(*done));
    const std::string* value = done->Find("value");
    if (value == nullptr) return Failure("the launcher answered without a value for the key " + key);
    return *value;
  }

  std::string Barrier() override {
    auto done = wire_.Ask(Message{"barrier_in"}, "barrier_out");
    return done ? std::string() : done.error().message;
  }

  std::string Finalize() override {
    auto done = wire_.Ask(Message{"finalize"}, "finalize_ack");
    return done ? std::string() : done.error().message;
  }

  void Abort(int exit_code, const std::string& message) override {
    Message abort{"abort"};
    abort.Add("exitcode", exit_code);
    // Hydra and Slurm read exitcode= only; our mpiexec shows error= too.
    if (!message.empty()) abort.Add("error", EscapeBlanks(Printable(message)));
    (void)wire_.Send(abort);  // the caller exits in any case
  }

 private:
  // " (msg)", or nothing.
  static std::string Reason(const Message& answer) {
    const std::string* text = answer.Find("msg");
    return text == nullptr ? std::string() : " (" + Printable(*text) + ")";
  }

  static std::string CheckWord(const char* what, const std::string& word, size_t longest) {
    if (word.size() > longest) {
      return std::string("a PMI ") + what + " of " + std::to_string(word.size()) +
             " bytes, where the launcher allows " + std::to_string(longest) + ": " + Printable(word);
    }
    for (const char c : word) {
      if (static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 0x7f) {
        return std::string("the PMI ") + what + " '" + Printable(word) +
               "' contains a blank or a byte that is not printable";
      }
    }
    return word.empty() && std::strcmp(what, "key") == 0 ? "an empty PMI key" : std::string();
  }

  std::string ReadMaxes() {
    auto answer = wire_.Ask(Message{"get_maxes"}, "maxes");
    if (!answer) return answer.error().message;
    for (auto [name, place] : {std::pair{"keylen_max", &key_max_}, {"vallen_max", &value_max_}}) {
      const std::optional<int> value = answer->FindInt(name);
      if (!value || *value < 2) return "the launcher allows nothing: '" + Printable(answer->Serialize()) + "'";
      *place = *value;
    }
    return {};
  }

  // A number that the launcher need not know ("infinite", -1): -1.
  std::string ReadNumber(const char* question, const char* answer_name, const char* field, int* number) {
    auto answer = wire_.Ask(Message{question}, answer_name);
    if (!answer) return answer.error().message;
    const int value = answer->FindInt(field).value_or(-1);
    *number = answer->FindInt("rc").value_or(0) == 0 && value >= 0 ? value : -1;
    return {};
  }

  std::string ReadKvsName() {
    auto answer = wire_.Ask(Message{"get_my_kvsname"}, "my_kvsname");
    if (!answer) return answer.error().message;
    const std::string* name = answer->Find("kvsname");
    if (name == nullptr || name->empty()) {
      return "the launcher answered get_my_kvsname with '" + Printable(answer->Serialize()) + "'";
    }
    kvs_name_ = *name;
    return {};
  }

  Wire wire_;
  int rank_;
  int size_;
  int debug_ = 0;
  int appnum_ = -1;
  int universe_size_ = -1;
  int key_max_ = kKeyMax;
  int value_max_ = kValueMax;
  std::string kvs_name_;
};

// The decimal number in the environment variable `name`.
Result<int, PmiError> NumberOf(const char* name, const char* needed_by) {
  const char* text = secure_getenv(name);
  if (text == nullptr) return Failure(std::string(name) + " is not set, but " + needed_by + " is");
  const std::optional<int> number = ParseInt(text);
  if (!number || *number < 0) return Failure(Quoted(name, text) + " is not a number of 0 or more");
  return *number;
}

// PMI_FD: an open descriptor of the launcher's.
Result<std::unique_ptr<Client>, PmiError> ConnectByDescriptor() {
  const auto fd = NumberOf("PMI_FD", "PMI_FD");
  if (!fd) return fd.error();
  const auto rank = NumberOf("PMI_RANK", "PMI_FD");
  if (!rank) return rank.error();
  const auto size = NumberOf("PMI_SIZE", "PMI_FD");
  if (!size) return size.error();
  // Closed in programs that this one starts: two that speak on it would take each other's answers.
  if (fcntl(fd.value(), F_SETFD, FD_CLOEXEC) != 0) {
    return Failure(
        Quoted("PMI_FD", std::to_string(fd.value())) +
        " is not an open descriptor; a program that an MPI process starts needs PMI_FD unset to be a job of its own");
  }
  auto client = std::make_unique<Connection>(fd.value(), rank.value(), size.value());
  if (std::string problem = client->Initialise(); !problem.empty()) return Failure(std::move(problem));
  return std::unique_ptr<Client>(std::move(client));
}

Result<std::unique_ptr<Client>, PmiError> ConnectByPort(const std::string& place) {
  const auto pmi_id = NumberOf("PMI_ID", "PMI_PORT");
  if (!pmi_id) return pmi_id.error();
  const auto launcher = ParseHostPort(place);
  if (!launcher) return Failure(Quoted("PMI_PORT", place) + " is not HOST:PORT");
  const auto fd = Dial(launcher->host, std::to_string(launcher->port));
  if (!fd) return fd.error();
  auto client = std::make_unique<Connection>(fd.value(), 0, 0);
  std::string problem = client->Introduce(pmi_id.value());
  if (problem.empty()) problem = client->Initialise();
  if (!problem.empty()) return Failure(std::move(problem));
  return std::unique_ptr<Client>(std::move(client));
}

}  // namespace

Result<std::unique_ptr<Client>, PmiError> Client::Connect() {
  if (secure_getenv("PMI_FD") != nullptr) return ConnectByDescriptor();
  if (const char* place = secure_getenv("PMI_PORT")) return ConnectByPort(place);
  return std::unique_ptr<Client>(std::make_unique<Singleton>());
}

}  // namespace weft::pmi
