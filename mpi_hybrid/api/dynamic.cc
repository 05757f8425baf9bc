#include <mpi.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "mpi_hybrid/api/comm_arguments.h"
#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/coll/collectives.h"
#include "mpi_hybrid/coll/spanning.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/dynamic/beside.h"
#include "mpi_hybrid/dynamic/connect.h"
#include "mpi_hybrid/dynamic/join.h"
#include "mpi_hybrid/dynamic/ports.h"
#include "mpi_hybrid/dynamic/spawn.h"
#include "pmi/client.h"

// Processes that come and go (MPI 4.0 chapter 11).
using namespace weft::mpi;
namespace pmi = weft::pmi;

namespace {

// A number of seconds; nullopt: it is none.
std::optional<std::chrono::seconds> ParseSeconds(std::string_view text) {
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0) return std::nullopt;
  return std::chrono::seconds(seconds);
}

// How long MPI_Comm_connect waits for MPI_Comm_accept if no info key says it: WEFT_MPI_CONNECT_TIMEOUT. Text that is no number is told
// once, and ignored.
std::chrono::seconds ConnectPatience() {
  static const std::chrono::seconds patience = [] {
    constexpr std::chrono::seconds kDefault{180};
    const char* const text = secure_getenv("WEFT_MPI_CONNECT_TIMEOUT");
    if (text == nullptr || *text == 0) return kDefault;
    const auto seconds = ParseSeconds(text);
    if (!seconds) weft::LogWarning(std::string("WEFT_MPI_CONNECT_TIMEOUT='") + text + "' is not a number of seconds; the default, 180, is used");
    return seconds.value_or(kDefault);
  }();
  return patience;
}

Error ClearComm(MPI_Comm* newcomm, const char* argument) {
  WEFT_MPI_TRY(CheckNotNull(newcomm, argument));
  *newcomm = MPI_COMM_NULL;
  return {};
}

// The info key "timeout": seconds.
Error ReadTimeOut(MPI_Info handle, std::optional<std::chrono::seconds> otherwise, Ports::Deadline* deadline) {
  Info* info;
  WEFT_MPI_TRY(FindInfo(handle, &info));
  const std::optional<std::string> text = info == nullptr ? std::nullopt : info->Get("timeout");
  std::optional<std::chrono::seconds> patience = otherwise;
  if (text) {
    patience = ParseSeconds(*text);
    if (!patience) return Error(MPI_ERR_INFO_VALUE, "timeout '" + *text + "' is not a number of seconds");
  }
  *deadline = std::nullopt;
  if (patience) *deadline = Ports::Clock::now() + *patience;
  return {};
}

Error CheckRootOf(const Comm& comm, int root) {
  if (root >= 0 && root < comm.size()) return {};
  return Error(MPI_ERR_ROOT, "root " + std::to_string(root) + " is not a rank of comm (0 to " + std::to_string(comm.size() - 1) + ")");
}

Error ReadPort(const char* port_name, std::string* port) {
  WEFT_MPI_TRY(CheckNotNull(port_name, "port_name"));
  port->assign(port_name, strnlen(port_name, MPI_MAX_PORT_NAME));
  return {};
}

using MeetGroup = Error (*)(const Meeting*, int, Comm&, Ref<Comm>*);

Error Meet(MeetGroup meet, std::optional<std::chrono::seconds> patience, const char* port_name, MPI_Info info, int root, Comm& comm,
           MPI_Comm* newcomm) {
  WEFT_MPI_TRY(CheckIntra(comm));
  WEFT_MPI_TRY(CheckWithinClient(comm, "connections of jobs"));
  WEFT_MPI_TRY(CheckRootOf(comm, root));
  WEFT_MPI_TRY(ClearComm(newcomm, "newcomm"));
  // port_name and info count at the root, which tells the others when they are wrong.
  Meeting meeting;
  if (comm.rank == root) {
    meeting.refusal = ReadPort(port_name, &meeting.port);
    if (meeting.refusal.ok()) meeting.refusal = ReadTimeOut(info, patience, &meeting.deadline);
  }
  const Ref<Comm> alive(&comm);
  Ref<Comm> made;
  WEFT_MPI_TRY(meet(comm.rank == root ? &meeting : nullptr, root, comm, &made));
  *newcomm = Comm::Give(made);
  return {};
}

Error ReadService(const char* service_name, std::string* service) {
  WEFT_MPI_TRY(CheckNotNull(service_name, "service_name"));
  *service = service_name;
  if (!service->empty()) return {};
  return Error(MPI_ERR_ARG, "service_name is empty");
}

Error AddCommand(const char* command, char** argv, int maxprocs, MPI_Info handle, SpawnOrder* order) {
  WEFT_MPI_TRY(CheckNotNull(command, "command"));
  if (maxprocs < 0) return Error(MPI_ERR_ARG, "maxprocs " + std::to_string(maxprocs) + " is negative");
  Info* info;
  WEFT_MPI_TRY(FindInfo(handle, &info));
  pmi::SpawnCommand made{.program = command, .arguments = {}, .processes = maxprocs, .info = {}};
  for (char** word = argv; word != MPI_ARGV_NULL && *word != nullptr; ++word) made.arguments.emplace_back(*word);
  if (info != nullptr) made.info = info->entries;
  order->commands.push_back(std::move(made));
  return {};
}

Error Spawn(const SpawnOrder& order, int root, Comm& comm, MPI_Comm* intercomm, int errcodes[]) {
  WEFT_MPI_TRY(CheckIntra(comm));
  WEFT_MPI_TRY(CheckWithinClient(comm, "jobs that start others"));
  WEFT_MPI_TRY(CheckRootOf(comm, root));
  WEFT_MPI_TRY(ClearComm(intercomm, "intercomm"));
  const Ref<Comm> alive(&comm);
  Ref<Comm> made;
  std::vector<int> errors;
  Error met = SpawnGroup(comm.rank == root ? &order : nullptr, root, comm, &errors, &made);
  if (errcodes != MPI_ERRCODES_IGNORE) std::copy(errors.begin(), errors.end(), errcodes);
  if (met.ok()) *intercomm = Comm::Give(made);
  return met;
}

}  // namespace

int PMPI_Open_port(MPI_Info info, char* port_name) {
  return Anywhere("MPI_Open_port", [&]() -> Error {
    Info* hints;
    WEFT_MPI_TRY(FindInfo(info, &hints));
    WEFT_MPI_TRY(CheckNotNull(port_name, "port_name"));
    std::string name;
    WEFT_MPI_TRY(Ports::Instance().Open(&name));
    std::memcpy(port_name, name.c_str(), name.size() + 1);
    return {};
  });
}
WEFT_MPI_ALIAS(Open_port)

int PMPI_Close_port(const char* port_name) {
  return Anywhere("MPI_Close_port", [&]() -> Error {
    std::string port;
    WEFT_MPI_TRY(ReadPort(port_name, &port));
    return Ports::Instance().Close(port);
  });
}
WEFT_MPI_ALIAS(Close_port)

int PMPI_Comm_accept(const char* port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* newcomm) {
  return OnComm("MPI_Comm_accept", comm,
                [&](Comm& c) -> Error { return Meet(&AcceptGroup, std::nullopt, port_name, info, root, c, newcomm); });
}
WEFT_MPI_ALIAS(Comm_accept)

int PMPI_Comm_connect(const char* port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* newcomm) {
  return OnComm("MPI_Comm_connect", comm,
                [&](Comm& c) -> Error { return Meet(&ConnectGroup, ConnectPatience(), port_name, info, root, c, newcomm); });
}
WEFT_MPI_ALIAS(Comm_connect)

int PMPI_Comm_join(int fd, MPI_Comm* intercomm) {
  return Anywhere("MPI_Comm_join", [&]() -> Error {
    WEFT_MPI_TRY(ClearComm(intercomm, "intercomm"));
    Ref<Comm> made;
    WEFT_MPI_TRY(Join(fd, &made));
    *intercomm = Comm::Give(made);
    return {};
  });
}
WEFT_MPI_ALIAS(Comm_join)

int PMPI_Comm_get_parent(MPI_Comm* parent) {
  return Anywhere("MPI_Comm_get_parent", [&]() -> Error {
    WEFT_MPI_TRY(ClearComm(parent, "parent"));
    if (const Comm* parents = Parents()) *parent = parents->handle;
    return {};
  });
}
WEFT_MPI_ALIAS(Comm_get_parent)

int PMPI_Comm_spawn(const char* command, char* argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm,
                    MPI_Comm* intercomm, int array_of_errcodes[]) {
  return OnComm("MPI_Comm_spawn", comm, [&](Comm& c) -> Error {
    SpawnOrder order;
    if (c.rank == root) order.refusal = AddCommand(command, argv, maxprocs, info, &order);
    return Spawn(order, root, c, intercomm, array_of_errcodes);
  });
}
WEFT_MPI_ALIAS(Comm_spawn)

int PMPI_Comm_spawn_multiple(int count, char* array_of_commands[], char** array_of_argv[], const int array_of_maxprocs[],
                             const MPI_Info array_of_info[], int root, MPI_Comm comm, MPI_Comm* intercomm,
                             int array_of_errcodes[]) {
  return OnComm("MPI_Comm_spawn_multiple", comm, [&](Comm& c) -> Error {
    SpawnOrder order;
    if (c.rank == root) {
      if (count < 1) order.refusal = Error(MPI_ERR_COUNT, "count " + std::to_string(count) + " is not a number of commands");
      if (order.refusal.ok()) order.refusal = CheckNotNull(array_of_commands, "array_of_commands");
      if (order.refusal.ok()) order.refusal = CheckNotNull(array_of_maxprocs, "array_of_maxprocs");
      if (order.refusal.ok()) order.refusal = CheckNotNull(array_of_info, "array_of_info");
      for (int i = 0; i < count && order.refusal.ok(); ++i) {
        char** words = array_of_argv == MPI_ARGVS_NULL ? MPI_ARGV_NULL : array_of_argv[i];
        order.refusal = AddCommand(array_of_commands[i], words, array_of_maxprocs[i], array_of_info[i], &order);
      }
    }
    return Spawn(order, root, c, intercomm, array_of_errcodes);
  });
}
WEFT_MPI_ALIAS(Comm_spawn_multiple)

int PMPI_Publish_name(const char* service_name, MPI_Info info, const char* port_name) {
  return Anywhere("MPI_Publish_name", [&]() -> Error {
    Info* hints;
    std::string service, port;
    WEFT_MPI_TRY(FindInfo(info, &hints));
    WEFT_MPI_TRY(ReadService(service_name, &service));
    WEFT_MPI_TRY(ReadPort(port_name, &port));
    std::string problem;
    RunBeside([&] { problem = ThisJob().pmi->Publish(service, port); });
    return problem.empty() ? Error() : Error(MPI_ERR_SERVICE, problem);
  });
}
WEFT_MPI_ALIAS(Publish_name)

int PMPI_Lookup_name(const char* service_name, MPI_Info info, char* port_name) {
  return Anywhere("MPI_Lookup_name", [&]() -> Error {
    Info* hints;
    std::string service;
    WEFT_MPI_TRY(FindInfo(info, &hints));
    WEFT_MPI_TRY(ReadService(service_name, &service));
    WEFT_MPI_TRY(CheckNotNull(port_name, "port_name"));
    weft::Result<std::string, pmi::PmiError> port = pmi::PmiError{};
    RunBeside([&] { port = ThisJob().pmi->Lookup(service); });
    if (!port.ok()) return Error(MPI_ERR_NAME, port.error().message);
    if (port->size() >= MPI_MAX_PORT_NAME)
      return Error(MPI_ERR_NAME, "the name service returned " + std::to_string(port->size()) + " characters, but a port name has fewer than " +
                                     std::to_string(MPI_MAX_PORT_NAME));
    std::memcpy(port_name, port->c_str(), port->size() + 1);
    return {};
  });
}
WEFT_MPI_ALIAS(Lookup_name)

int PMPI_Unpublish_name(const char* service_name, MPI_Info info, const char* port_name) {
  return Anywhere("MPI_Unpublish_name", [&]() -> Error {
    Info* hints;
    std::string service, port;
    WEFT_MPI_TRY(FindInfo(info, &hints));
    WEFT_MPI_TRY(ReadService(service_name, &service));
    WEFT_MPI_TRY(ReadPort(port_name, &port));
    std::string problem;
    RunBeside([&] { problem = ThisJob().pmi->Unpublish(service); });
    return problem.empty() ? Error() : Error(MPI_ERR_SERVICE, problem);
  });
}
WEFT_MPI_ALIAS(Unpublish_name)

int PMPI_Comm_disconnect(MPI_Comm* comm) {
  if (comm == nullptr) return Anywhere("MPI_Comm_disconnect", [&] { return CheckNotNull(comm, "comm"); });
  return OnComm("MPI_Comm_disconnect", *comm, [&](Comm& c) -> Error {
    if (IsPredefined(c)) return Error(MPI_ERR_COMM, c.name + " cannot be disconnected");
    Ref<Comm> last(&c);
    LeaveParents(c);
    WEFT_MPI_TRY(Barrier(c));
    WEFT_MPI_TRY(c.attributes.DeleteAll(c.handle));
    Comm::TakeBack(c);
    *comm = MPI_COMM_NULL;
    return Disconnect(std::move(last));
  });
}
WEFT_MPI_ALIAS(Comm_disconnect)
