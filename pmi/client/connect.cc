// Which client a process gets, by its environment.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/host_port.h"
#include "pmi/client.h"
#include "pmi/client/launched.h"
#include "pmi/client/singleton.h"
#include "pmi/client/socket.h"
#include "pmi/secret_file.h"
#include "pmi/tls/tls_stream.h"

namespace weft::pmi {
namespace {

constexpr char kVersion[] = "WEFT_PMI", kAlone[] = "alone";
constexpr char kSocketType[] = "PMI_SOCKTYPE", kOpenSsl[] = "OpenSSL";

std::string Quoted(const char* name, const std::string& value) { return std::string(name) + "=" + value; }

// The decimal number in the environment variable `name`.
Result<int, PmiError> NumberOf(const char* name, const char* needed_by) {
  const char* text = secure_getenv(name);
  if (text == nullptr) return PmiError{std::string(name) + " is not set, but " + needed_by + " is"};
  const std::optional<int> number = ParseInt(text);
  if (!number || *number < 0) return PmiError{Quoted(name, text) + " is not a number of 0 or more"};
  return *number;
}

std::string TextOf(const char* name) {
  const char* text = secure_getenv(name);
  return text == nullptr ? std::string() : text;
}

Result<Launched::Place, PmiError> PlaceOf(bool by_port) {
  Launched::Place place;
  place.by_port = by_port;
  place.job_id = TextOf("PMI_JOBID");
  place.spawned = ParseInt(TextOf("PMI_SPAWNED")).value_or(0) != 0;
  // Its pmi2 plugin sets PMI_JOBID beside a descriptor, which hydra and our mpiexec do not.
  place.slurm = !by_port && !place.job_id.empty() && (!TextOf("SLURM_JOB_ID").empty() || !TextOf("SLURM_JOBID").empty() || !TextOf("SLURM_STEP_ID").empty());
  if (const std::string path = TextOf("WEFT_PMI_SECRET_FILE"); !path.empty()) {
    auto secret = ReadSecretFile(path);
    if (!secret) return PmiError{"WEFT_PMI_SECRET_FILE: " + secret.error().message};
    place.secret = *std::move(secret);
  }
  const std::string socket_type = TextOf(kSocketType);
  place.secured = socket_type == kOpenSsl;
  if (!place.secured && !socket_type.empty() && socket_type != "POSIX") {
    return PmiError{Quoted(kSocketType, socket_type) + " is unknown; it can be POSIX or OpenSSL"};
  }
  if (place.secured && place.secret.empty()) return PmiError{Quoted(kSocketType, socket_type) + " needs a secret, and WEFT_PMI_SECRET_FILE is not set"};
  // Without TLS version 1 cannot prove that it knows a secret.
  place.version = place.slurm || (by_port && !place.secret.empty() && !place.secured) ? 2 : 1;
  if (const std::string wanted = TextOf(kVersion); !wanted.empty()) {
    if (wanted != "1" && wanted != "2") return PmiError{Quoted(kVersion, wanted) + " is not a version of PMI; it can be 1, 2 or alone (no PMI)"};
    place.version = wanted == "2" ? 2 : 1;
  }
  return place;
}

// Null where the place is not secured.
Result<std::unique_ptr<TlsStream>, PmiError> TlsFor(const Launched::Place& place) {
  if (!place.secured) return std::unique_ptr<TlsStream>();
  return TlsStream::Make(TlsStream::Side::kClient, place.secret);
}

Result<std::unique_ptr<Launched>, PmiError> Start(int fd, Launched::Place place) {
  auto tls = TlsFor(place);
  if (!tls) {
    close(fd);
    return tls.error();
  }
  auto client = std::make_unique<Launched>(fd, std::move(tls).value(), std::move(place));
  if (std::string problem = client->Initialise(); !problem.empty()) return PmiError{std::move(problem)};
  return client;
}

// PMI_FD: an open descriptor of the launcher's.
Result<std::unique_ptr<Client>, PmiError> ConnectByDescriptor(Launched::Place place) {
  const auto fd = NumberOf("PMI_FD", "PMI_FD");
  if (!fd) return fd.error();
  const auto rank = NumberOf("PMI_RANK", "PMI_FD");
  if (!rank) return rank.error();
  const auto size = NumberOf("PMI_SIZE", "PMI_FD");
  if (!size) return size.error();
  // Closed in programs that this one starts: two that speak on it would take each other's answers.
  if (fcntl(fd.value(), F_SETFD, FD_CLOEXEC) != 0) {
    return PmiError{
        Quoted("PMI_FD", std::to_string(fd.value())) +
        " is not an open descriptor; unset PMI_FD to run a program that an MPI process starts as a job of its own"};
  }
  place.rank = *rank;
  place.size = *size;
  auto client = Start(*fd, std::move(place));
  if (!client) return client.error();
  return std::unique_ptr<Client>(std::move(client).value());
}

Result<std::unique_ptr<Client>, PmiError> ConnectByPort(const std::string& address, Launched::Place place) {
  const auto pmi_id = NumberOf("PMI_ID", "PMI_PORT");
  if (!pmi_id) return pmi_id.error();
  const auto launcher = ParseHostPort(address);
  if (!launcher) return PmiError{Quoted("PMI_PORT", address) + " is not HOST:PORT"};
  const auto fd = Dial(launcher->host, std::to_string(launcher->port));
  if (!fd) return fd.error();
  place.rank = *pmi_id;
  auto client = Start(*fd, place);
  if (!client) return client.error();
  if (const std::string signal = TextOf("WEFT_PMI_OOB"); !signal.empty()) {
    const auto second = Dial(launcher->host, std::to_string(launcher->port));
    if (!second) return second.error();
    auto tls = TlsFor(place);
    if (!tls) {
      close(*second);
      return tls.error();
    }
    if (const std::string problem = client.value()->Listen(*second, std::move(tls).value(), signal); !problem.empty()) {
      return PmiError{Quoted("WEFT_PMI_OOB", signal) + ": " + problem};
    }
  }
  return std::unique_ptr<Client>(std::move(client).value());
}

// As base/log does, in one write. Not by it: GCC 12 cannot link what has link-time code together with it (BUILD).
void Warn(const std::string& message) {
  const std::string line = "weft: " + message + "\n";
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;  // nowhere to say it
}

// A job of one, unless something started several processes of this job in a way that this client does not understand: that each of them
// thinks that it is alone would be noticed late.
Result<std::unique_ptr<Client>, PmiError> ConnectToNobody() {
  const std::string space = TextOf("PMIX_NAMESPACE");
  const int tasks = ParseInt(TextOf("SLURM_STEP_NUM_TASKS")).value_or(0);
  const int ranks = std::max(tasks, ParseInt(TextOf("OMPI_COMM_WORLD_SIZE")).value_or(0));
  if (TextOf(kVersion) != kAlone && !space.empty() && ranks != 1) {
    return PmiError{"this process was started through PMIx (" + Quoted("PMIX_NAMESPACE", space) +
                    "), which Weft does not support. Under Slurm, use srun --mpi=pmi2 or SLURM_MPI_TYPE=pmi2; elsewhere, use Weft's mpiexec. For a process "
                    "that is a job of its own, set WEFT_PMI=alone"};
  }
  if (TextOf(kVersion) != kAlone && space.empty() && tasks > 1 && TextOf("SLURM_PROCID") == "0") {
    Warn("srun started " + std::to_string(tasks) + " tasks that do not know each other: each is rank 0 of 1. For one job use srun --mpi=pmi2; WEFT_PMI=alone silences this warning");
  }
  return std::unique_ptr<Client>(std::make_unique<Singleton>());
}

}  // namespace

Result<std::unique_ptr<Client>, PmiError> Client::Connect() {
  const bool by_descriptor = secure_getenv("PMI_FD") != nullptr;
  const char* address = secure_getenv("PMI_PORT");
  if (TextOf(kVersion) == kAlone || (!by_descriptor && address == nullptr)) return ConnectToNobody();
  auto place = PlaceOf(!by_descriptor);
  if (!place) return place.error();
  return by_descriptor ? ConnectByDescriptor(*std::move(place)) : ConnectByPort(address, *std::move(place));
}

}  // namespace weft::pmi
