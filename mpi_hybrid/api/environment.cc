#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "base/version.h"
#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/environment_info.h"
#include "mpi_hybrid/api/report.h"
#include "mpi_hybrid/core/info.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/rma/memory.h"

// Where the program runs, versions, timers, memory (MPI 4.0 sections 9.1, 9.2, 9.6 and 5.1.5).
using namespace weft::mpi;

namespace weft::mpi {
namespace {

constexpr size_t kAlignment = 64;  // of MPI_Alloc_mem, at least
constexpr size_t kMostAlignment = 1 << 30;

// MPI 4.0 section 9.2; what is no power of two, or more than that, is ignored.
size_t AlignmentOf(const Info* info) {
  const std::optional<std::string> text = info == nullptr ? std::nullopt : info->Get("mpi_minimum_memory_alignment");
  if (!text) return kAlignment;
  size_t wanted = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), wanted);
  if (error != std::errc() || end != text->data() + text->size() || wanted > kMostAlignment || !std::has_single_bit(wanted)) return kAlignment;
  return std::max(wanted, kAlignment);
}

std::string HostName() {
  utsname names;
  return uname(&names) == 0 ? names.nodename : "localhost";
}

std::string LibraryVersion() {
  return "Weft MPI " + std::string(Version()) +
         " (messages over sockets, one-sided operations over RDMA; ABI of MPICH " MPICH_VERSION ")";
}

// The caller may pass the terminating zero's room or not: `resultlen` does not count it.
Error CopyText(const std::string& text, size_t room, char* to, int* length) {
  WEFT_MPI_TRY(CheckNotNull(to, "the string"));
  WEFT_MPI_TRY(CheckNotNull(length, "resultlen"));
  const size_t size = std::min(text.size(), room - 1);
  std::memcpy(to, text.c_str(), size);
  to[size] = '\0';
  *length = static_cast<int>(size);
  return {};
}

}  // namespace

void FillEnvironmentInfo() {
  Info& info = EnvironmentInfo();
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string line{std::istreambuf_iterator<char>(file), {}};
  const size_t end_of_command = line.find('\0');
  if (end_of_command != line.npos) {
    info.Set("command", line.substr(0, std::min<size_t>(end_of_command, MPI_MAX_INFO_VAL - 1)));
    std::string arguments = line.substr(end_of_command + 1);
    for (char& c : arguments) c = c == '\0' ? ' ' : c;
    while (!arguments.empty() && arguments.back() == ' ') arguments.pop_back();
    info.Set("argv", arguments.substr(0, MPI_MAX_INFO_VAL - 1));
  }
  info.Set("maxprocs", std::to_string(ThisJob().size));
  info.Set("host", HostName());
  utsname names;
  if (uname(&names) == 0) info.Set("arch", names.machine);
  char directory[PATH_MAX];
  if (getcwd(directory, sizeof directory) != nullptr && std::strlen(directory) < MPI_MAX_INFO_VAL) info.Set("wdir", directory);
}

}  // namespace weft::mpi

int PMPI_Get_processor_name(char* name, int* resultlen) {
  return Anywhere("MPI_Get_processor_name", [&] { return CopyText(HostName(), MPI_MAX_PROCESSOR_NAME, name, resultlen); });
}
WEFT_MPI_ALIAS(Get_processor_name)

int PMPI_Get_version(int* version, int* subversion) {
  return AtAnyTime("MPI_Get_version", [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(version, "version"));
    WEFT_MPI_TRY(CheckNotNull(subversion, "subversion"));
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return {};
  });
}
WEFT_MPI_ALIAS(Get_version)

int PMPI_Get_library_version(char* version, int* resultlen) {
  return AtAnyTime("MPI_Get_library_version",
                   [&] { return CopyText(LibraryVersion(), MPI_MAX_LIBRARY_VERSION_STRING, version, resultlen); });
}
WEFT_MPI_ALIAS(Get_library_version)

double PMPI_Wtime(void) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}
WEFT_MPI_ALIAS(Wtime)

double PMPI_Wtick(void) {
  timespec tick;
  clock_getres(CLOCK_MONOTONIC, &tick);
  return static_cast<double>(tick.tv_sec) + static_cast<double>(tick.tv_nsec) * 1e-9;
}
WEFT_MPI_ALIAS(Wtick)

int PMPI_Alloc_mem(MPI_Aint size, MPI_Info info, void* baseptr) {
  return Anywhere("MPI_Alloc_mem", [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(baseptr, "baseptr"));
    if (size < 0) return Error(MPI_ERR_SIZE, "size " + std::to_string(size) + " is negative");
    if (info != MPI_INFO_NULL && Info::Find(info) == nullptr) return Error(MPI_ERR_INFO, "info is not an info object");
    void* const memory = AllocateMemory(static_cast<size_t>(size), AlignmentOf(Info::Find(info)));
    if (memory == nullptr) return Error(MPI_ERR_NO_MEM, "cannot allocate " + std::to_string(size) + " bytes of memory");
    std::memcpy(baseptr, &memory, sizeof memory);
    return {};
  });
}
WEFT_MPI_ALIAS(Alloc_mem)

int PMPI_Free_mem(void* base) {
  return Anywhere("MPI_Free_mem", [&]() -> Error {
    FreeMemory(base);
    return {};
  });
}
WEFT_MPI_ALIAS(Free_mem)

int PMPI_Get_address(const void* location, MPI_Aint* address) {
  return AtAnyTime("MPI_Get_address", [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(address, "address"));
    *address = reinterpret_cast<MPI_Aint>(location);
    return {};
  });
}
WEFT_MPI_ALIAS(Get_address)

int PMPI_Address(void* location, MPI_Aint* address) {
  return AtAnyTime("MPI_Address", [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(address, "address"));
    *address = reinterpret_cast<MPI_Aint>(location);
    return {};
  });
}
WEFT_MPI_ALIAS(Address)

// Addresses are unsigned; the sum of one and a displacement wraps.
MPI_Aint PMPI_Aint_add(MPI_Aint base, MPI_Aint disp) {
  return static_cast<MPI_Aint>(static_cast<unsigned long>(base) + static_cast<unsigned long>(disp));
}
WEFT_MPI_ALIAS(Aint_add)

MPI_Aint PMPI_Aint_diff(MPI_Aint addr1, MPI_Aint addr2) {
  return static_cast<MPI_Aint>(static_cast<unsigned long>(addr1) - static_cast<unsigned long>(addr2));
}
WEFT_MPI_ALIAS(Aint_diff)

// For profiling libraries, which put theirs in its place (MPI 4.0 section 15.2.4).
int PMPI_Pcontrol(const int, ...) { return MPI_SUCCESS; }
WEFT_MPI_ALIAS(Pcontrol)
