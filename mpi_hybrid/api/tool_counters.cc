#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <set>

#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/tool.h"
#include "mpi_hybrid/core/counters.h"
#include "mpi_hybrid/p2p/message.h"

// Performance variables: counters and high-water marks, which a handle may set back for itself, and levels, which are as they are. All run always.
namespace weft::mpi::tool {
namespace {

struct Variable {
  const char* name;
  const char* help;
  Category category;
  uint64_t Counters::*counter;  // or the mark; null: a level
  size_t (*level)() = nullptr;  // of a mark: what it is the mark of

  bool is_level() const { return counter == nullptr; }
  bool is_mark() const { return counter != nullptr && level != nullptr; }
};
constexpr Variable kVariables[] = {
    {"messages_sent", "Messages sent to other processes.", Category::kTraffic, &Counters::messages_sent},
    {"bytes_sent", "Bytes of data in them.", Category::kTraffic, &Counters::bytes_sent},
    {"messages_received", "Messages received from other processes.", Category::kTraffic, &Counters::messages_received},
    {"bytes_received", "Bytes of data in them.", Category::kTraffic, &Counters::bytes_received},
    {"host_bytes_sent", "Bytes of messages and their headers that were sent through memory shared with ranks of this host.", Category::kTraffic,
     &Counters::host_bytes_sent},
    {"host_copies", "Pieces of messages, and blocks of collectives, that were copied directly from the memory of the sending rank.", Category::kTraffic,
     &Counters::host_copies},
    {"lock_handovers", "Times that a long copy, or a wait for which messages came without a pause, let another thread of the process have the library's lock.",
     Category::kTraffic, &Counters::lock_handovers},
    {"unexpected_messages", "Messages that arrived, or were announced, before their receive was posted.", Category::kTraffic, &Counters::unexpected_messages},
    {"unexpected_queue_length", "Messages that wait for a receive now.", Category::kTraffic, nullptr, UnexpectedMessages},
    {"unexpected_queue_longest", "The highest number of messages that waited for a receive at one time.", Category::kTraffic, &Counters::unexpected_most,
     UnexpectedMessages},
    {"puts", "Calls of MPI_Put and MPI_Rput, however they were carried out.", Category::kOneSided, &Counters::puts},
    {"gets", "MPI_Get and MPI_Rget.", Category::kOneSided, &Counters::gets},
    {"accumulates", "MPI_Accumulate and MPI_Raccumulate.", Category::kOneSided, &Counters::accumulates},
    {"get_accumulates", "MPI_Get_accumulate and MPI_Rget_accumulate.", Category::kOneSided, &Counters::get_accumulates},
    {"fetch_and_ops", "MPI_Fetch_and_op.", Category::kOneSided, &Counters::fetch_and_ops},
    {"compare_and_swaps", "MPI_Compare_and_swap.", Category::kOneSided, &Counters::compare_and_swaps},
    {"memory_waits", "Waits of windows that checked only memory shared with ranks of this host.", Category::kOneSided,
     &Counters::memory_waits},
    {"deferred_operations", "Calls of MPI_Put with small pieces and of MPI_Accumulate that were deferred to the target, a rank of this host, until the epoch ended.",
     Category::kOneSided, &Counters::deferred_operations},
    {"window_messages", "Messages that one-sided communication sent to targets: locks, fences, and operations that are not RDMA.", Category::kOneSided,
     &Counters::window_messages},
    {"rdma_operations", "RDMA operations that one-sided communication posted.", Category::kOneSided, &Counters::rdma_operations},
    {"rdma_bytes", "Bytes that they moved.", Category::kOneSided, &Counters::rdma_bytes},
};

bool IsIndex(int index) { return index >= 0 && index < static_cast<int>(std::size(kVariables)); }
int ClassOf(const Variable& variable) {
  if (variable.is_level()) return MPI_T_PVAR_CLASS_LEVEL;
  return variable.is_mark() ? MPI_T_PVAR_CLASS_HIGHWATERMARK : MPI_T_PVAR_CLASS_COUNTER;
}
uint64_t ValueOf(const Variable& variable) { return variable.is_level() ? variable.level() : g_counters.*variable.counter; }

}  // namespace

std::vector<int> CountersIn(Category category) {
  std::vector<int> found;
  for (int i = 0; IsIndex(i); ++i) {
    if (kVariables[i].category == category) found.push_back(i);
  }
  return found;
}

}  // namespace weft::mpi::tool

using namespace weft::mpi::tool;
using weft::mpi::g_counters;

// Handles are what these point to; what is handed out is remembered, so that others are told from them.
struct MPIR_T_pvar_handle_s {
  MPIR_T_pvar_session_s* session;
  const Variable* variable;
  uint64_t base = 0;  // what the value is counted from; of a mark: the mark, as far as the variable has been set back since

  uint64_t value() const { return variable->is_mark() ? std::max(base, ValueOf(*variable)) : ValueOf(*variable) - base; }
  bool is_level() const { return variable->is_level(); }
};
struct MPIR_T_pvar_session_s {
  std::set<MPIR_T_pvar_handle_s*> handles;
};

namespace {

std::set<MPI_T_pvar_session>& Sessions() {
  static auto* sessions = new std::set<MPI_T_pvar_session>;
  return *sessions;
}

template <typename Body>
int OnSession(MPI_T_pvar_session session, Body body) {
  return Sessions().count(session) > 0 ? body(*session) : MPI_T_ERR_INVALID_SESSION;
}

template <typename Body>
int OnVariable(MPI_T_pvar_session session, MPI_T_pvar_handle handle, Body body) {
  return OnSession(session, [&](MPIR_T_pvar_session_s& s) { return s.handles.count(handle) > 0 ? body(*handle) : MPI_T_ERR_INVALID_HANDLE; });
}

// MPI_T_PVAR_ALL_HANDLES too, for which those that it does not suit are left out.
template <typename Body>
int OnVariables(MPI_T_pvar_session session, MPI_T_pvar_handle handle, Body body) {
  if (handle != MPI_T_PVAR_ALL_HANDLES) return OnVariable(session, handle, body);
  return OnSession(session, [&](MPIR_T_pvar_session_s& s) {
    for (MPIR_T_pvar_handle_s* each : s.handles) body(*each);
    return MPI_SUCCESS;
  });
}

// Sets the value to `value`; of a mark, which is no less than what it is the mark of, to that if nothing was given. Handles share the variable of a
// mark: what it was until now they keep.
void SetBack(MPIR_T_pvar_handle_s& handle, uint64_t value) {
  if (!handle.variable->is_mark()) {
    handle.base = ValueOf(*handle.variable) - value;
    return;
  }
  for (MPIR_T_pvar_session_s* session : Sessions()) {
    for (MPIR_T_pvar_handle_s* other : session->handles) {
      if (other->variable == handle.variable) other->base = other->value();
    }
  }
  g_counters.*handle.variable->counter = handle.variable->level();
  handle.base = value;
}

int Read(const MPIR_T_pvar_handle_s& handle, void* buf) {
  if (buf == nullptr) return MPI_T_ERR_INVALID;
  const unsigned long long value = handle.value();
  std::memcpy(buf, &value, sizeof value);
  return MPI_SUCCESS;
}

void Free(MPIR_T_pvar_session_s* session) {
  for (MPIR_T_pvar_handle_s* handle : session->handles) delete handle;
  delete session;
}

}  // namespace

void weft::mpi::tool::DropCounters() {
  for (MPI_T_pvar_session session : Sessions()) Free(session);
  Sessions().clear();
}

int PMPI_T_pvar_get_num(int* num_pvar) {
  return WhenInitialized([&] { return GiveCount(num_pvar, static_cast<int>(std::size(kVariables))); });
}
WEFT_MPI_ALIAS(T_pvar_get_num)

int PMPI_T_pvar_get_index(const char* name, int var_class, int* pvar_index) {
  return WhenInitialized([&] {
    int found;
    if (pvar_index == nullptr) return MPI_T_ERR_INVALID;
    if (const int code = FindName(kVariables, name, &found); code != MPI_SUCCESS) return code;
    if (var_class != ClassOf(kVariables[found])) return MPI_T_ERR_INVALID_NAME;
    *pvar_index = found;
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_pvar_get_index)

int PMPI_T_pvar_get_info(int pvar_index, char* name, int* name_len, int* verbosity, int* var_class, MPI_Datatype* datatype,
                         MPI_T_enum* enumtype, char* desc, int* desc_len, int* bind, int* readonly, int* continuous,
                         int* atomic) {
  return WhenInitialized([&] {
    if (!IsIndex(pvar_index)) return MPI_T_ERR_INVALID_INDEX;
    const Variable& variable = kVariables[pvar_index];
    const bool is_level = variable.is_level();
    GiveText(variable.name, name, name_len);
    GiveText(variable.help, desc, desc_len);
    Give<int>(verbosity, MPI_T_VERBOSITY_USER_BASIC);
    Give<int>(var_class, ClassOf(variable));
    Give<MPI_Datatype>(datatype, MPI_UNSIGNED_LONG_LONG);
    Give<MPI_T_enum>(enumtype, MPI_T_ENUM_NULL);
    Give<int>(bind, MPI_T_BIND_NO_OBJECT);
    Give(readonly, is_level ? 1 : 0);
    Give(continuous, 1);
    Give(atomic, is_level ? 0 : 1);  // MPI_T_pvar_readreset reads and sets back under the library's lock
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_pvar_get_info)

int PMPI_T_pvar_session_create(MPI_T_pvar_session* session) {
  return WhenInitialized([&] {
    if (session == nullptr) return MPI_T_ERR_INVALID;
    *session = new MPIR_T_pvar_session_s;
    Sessions().insert(*session);
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_pvar_session_create)

int PMPI_T_pvar_session_free(MPI_T_pvar_session* session) {
  return WhenInitialized([&] {
    if (session == nullptr) return MPI_T_ERR_INVALID;
    return OnSession(*session, [&](MPIR_T_pvar_session_s& s) {
      Sessions().erase(&s);
      Free(&s);
      *session = MPI_T_PVAR_SESSION_NULL;
      return MPI_SUCCESS;
    });
  });
}
WEFT_MPI_ALIAS(T_pvar_session_free)

int PMPI_T_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void*, MPI_T_pvar_handle* handle, int* count) {
  return WhenInitialized([&] {
    return OnSession(session, [&](MPIR_T_pvar_session_s& s) {
      if (!IsIndex(pvar_index)) return MPI_T_ERR_INVALID_INDEX;
      if (handle == nullptr || count == nullptr) return MPI_T_ERR_INVALID;
      *handle = new MPIR_T_pvar_handle_s{session, &kVariables[pvar_index]};
      if (!(*handle)->is_level()) SetBack(**handle, 0);
      s.handles.insert(*handle);
      *count = 1;
      return MPI_SUCCESS;
    });
  });
}
WEFT_MPI_ALIAS(T_pvar_handle_alloc)

int PMPI_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle* handle) {
  return WhenInitialized([&] {
    if (handle == nullptr) return MPI_T_ERR_INVALID;
    return OnVariable(session, *handle, [&](MPIR_T_pvar_handle_s& freed) {
      freed.session->handles.erase(&freed);
      delete &freed;
      *handle = MPI_T_PVAR_HANDLE_NULL;
      return MPI_SUCCESS;
    });
  });
}
WEFT_MPI_ALIAS(T_pvar_handle_free)

int PMPI_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return WhenInitialized([&] { return OnVariables(session, handle, [](MPIR_T_pvar_handle_s&) { return MPI_T_ERR_PVAR_NO_STARTSTOP; }); });
}
WEFT_MPI_ALIAS(T_pvar_start)

int PMPI_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return WhenInitialized([&] { return OnVariables(session, handle, [](MPIR_T_pvar_handle_s&) { return MPI_T_ERR_PVAR_NO_STARTSTOP; }); });
}
WEFT_MPI_ALIAS(T_pvar_stop)

int PMPI_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf) {
  return WhenInitialized([&] { return OnVariable(session, handle, [&](const MPIR_T_pvar_handle_s& h) { return Read(h, buf); }); });
}
WEFT_MPI_ALIAS(T_pvar_read)

int PMPI_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf) {
  return WhenInitialized([&] {
    return OnVariable(session, handle, [&](MPIR_T_pvar_handle_s& h) {
      if (h.is_level()) return MPI_T_ERR_PVAR_NO_ATOMIC;
      if (const int code = Read(h, buf); code != MPI_SUCCESS) return code;
      SetBack(h, 0);
      return MPI_SUCCESS;
    });
  });
}
WEFT_MPI_ALIAS(T_pvar_readreset)

int PMPI_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return WhenInitialized([&] {
    return OnVariables(session, handle, [](MPIR_T_pvar_handle_s& h) {
      if (h.is_level()) return MPI_T_ERR_PVAR_NO_WRITE;
      SetBack(h, 0);
      return MPI_SUCCESS;
    });
  });
}
WEFT_MPI_ALIAS(T_pvar_reset)

int PMPI_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void* buf) {
  return WhenInitialized([&] {
    return OnVariable(session, handle, [&](MPIR_T_pvar_handle_s& h) {
      if (h.is_level()) return MPI_T_ERR_PVAR_NO_WRITE;
      if (buf == nullptr) return MPI_T_ERR_INVALID;
      unsigned long long value;
      std::memcpy(&value, buf, sizeof value);
      SetBack(h, value);
      return MPI_SUCCESS;
    });
  });
}
WEFT_MPI_ALIAS(T_pvar_write)
