#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/core/counters.h"
#include "mpi_hybrid/core/settings.h"

// MPI_T, the tool interface (MPI 4.0 section 15.3): the settings as control variables (constant: they are read from the
// environment at MPI_Init), counters of traffic as performance variables, no events. Its functions return codes and call no error
// handler.
namespace {

using weft::mpi::AllSettings;
using weft::mpi::LockGuard;

struct PerformanceVariable {
  const char* name;
  const char* help;
  uint64_t weft::mpi::Counters::*counter;
};
constexpr PerformanceVariable kVariables[] = {
    {"messages_sent", "Messages sent to other processes.", &weft::mpi::Counters::messages_sent},
    {"bytes_sent", "Bytes of data in them.", &weft::mpi::Counters::bytes_sent},
    {"messages_received", "Messages received from other processes.", &weft::mpi::Counters::messages_received},
    {"bytes_received", "Bytes of data in them.", &weft::mpi::Counters::bytes_received},
    {"host_bytes_sent", "Bytes of messages and their headers that went through memory in common with ranks of this host.",
     &weft::mpi::Counters::host_bytes_sent},
    {"host_copies", "Pieces of messages that were copied from the memory of the rank that sent them.",
     &weft::mpi::Counters::host_copies},
    {"rdma_operations", "RDMA operations that one-sided communication posted.", &weft::mpi::Counters::rdma_operations},
    {"rdma_bytes", "Bytes that they moved.", &weft::mpi::Counters::rdma_bytes},
};
constexpr int kVariableCount = static_cast<int>(std::size(kVariables));

struct Category {
  const char* name;
  const char* help;
};
constexpr Category kCategories[] = {
    {"settings", "Environment variables that the MPI library reads."},
    {"traffic", "What this process sent and received."},
};
constexpr int kCategoryCount = static_cast<int>(std::size(kCategories));
constexpr int kSettingsCategory = 0;

int g_initialized = 0;  // MPI_T_init_thread less MPI_T_finalize

int SettingCount() { return static_cast<int>(AllSettings().size()); }

// Gives as much of `text` as `*length` has room for with the terminating zero, and the whole length with it. Both may be null.
void GiveText(const char* text, char* to, int* length) {
  if (length == nullptr) return;
  const int whole = static_cast<int>(std::strlen(text)) + 1;
  if (to != nullptr && *length > 0) {
    const int copied = std::min(*length, whole) - 1;
    std::memcpy(to, text, static_cast<size_t>(copied));
    to[copied] = '\0';
  }
  *length = whole;
}

template <typename T>
void Give(T* to, T value) {
  if (to != nullptr) *to = value;
}

template <typename Body>
int WhenInitialized(Body body) {
  LockGuard lock;
  return g_initialized > 0 ? body() : MPI_T_ERR_NOT_INITIALIZED;
}

const char* ValueOf(int setting) {
  const auto& info = AllSettings()[static_cast<size_t>(setting)];
  const char* value = secure_getenv(info.name);
  return value != nullptr && *value != '\0' ? value : info.initial;
}

}  // namespace

// Handles are what these point to; what is handed out is remembered, so that others are told from them.
struct MPIR_T_cvar_handle_s {
  int setting;
  std::string value;
};
struct MPIR_T_pvar_handle_s {
  MPIR_T_pvar_session_s* session;
  uint64_t weft::mpi::Counters::*counter;
  uint64_t base;  // the counter at the last start or reset
};
struct MPIR_T_pvar_session_s {
  std::set<MPIR_T_pvar_handle_s*> handles;
};

namespace {

std::set<MPI_T_cvar_handle>& ControlHandles() {
  static auto* handles = new std::set<MPI_T_cvar_handle>;
  return *handles;
}

std::set<MPI_T_pvar_session>& Sessions() {
  static auto* sessions = new std::set<MPI_T_pvar_session>;
  return *sessions;
}

template <typename Body>
int OnControlHandle(MPI_T_cvar_handle handle, Body body) {
  return WhenInitialized([&] { return ControlHandles().count(handle) > 0 ? body(*handle) : MPI_T_ERR_INVALID_HANDLE; });
}

template <typename Body>
int OnSession(MPI_T_pvar_session session, Body body) {
  return WhenInitialized([&] { return Sessions().count(session) > 0 ? body(*session) : MPI_T_ERR_INVALID_SESSION; });
}

// `all`: MPI_T_PVAR_ALL_HANDLES is allowed.
template <typename Body>
int OnVariable(MPI_T_pvar_session session, MPI_T_pvar_handle handle, bool all, Body body) {
  return OnSession(session, [&](MPIR_T_pvar_session_s& s) {
    if (all && handle == MPI_T_PVAR_ALL_HANDLES) {
      for (MPIR_T_pvar_handle_s* each : s.handles) body(*each);
      return MPI_SUCCESS;
    }
    return s.handles.count(handle) > 0 ? body(*handle) : MPI_T_ERR_INVALID_HANDLE;
  });
}

uint64_t Now(const MPIR_T_pvar_handle_s& handle) { return weft::mpi::g_counters.*handle.counter - handle.base; }

template <typename Table>
int FindName(const Table& table, const char* name, int* index) {
  if (name == nullptr || index == nullptr) return MPI_T_ERR_INVALID;
  int at = 0;
  for (const auto& entry : table) {
    if (std::strcmp(entry.name, name) == 0) {
      *index = at;
      return MPI_SUCCESS;
    }
    ++at;
  }
  return MPI_T_ERR_INVALID_NAME;
}

}  // namespace

int PMPI_T_init_thread(int required, int* provided) {
  LockGuard lock;
  ++g_initialized;
  Give(provided, required);
  return MPI_SUCCESS;
}
WEFT_MPI_ALIAS(T_init_thread)

int PMPI_T_finalize(void) {
  return WhenInitialized([] {
    --g_initialized;
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_finalize)

// --- control variables ---

int PMPI_T_cvar_get_num(int* num_cvar) {
  return WhenInitialized([&] {
    if (num_cvar == nullptr) return MPI_T_ERR_INVALID;
    *num_cvar = SettingCount();
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_cvar_get_num)

int PMPI_T_cvar_get_index(const char* name, int* cvar_index) {
  return WhenInitialized([&] { return FindName(AllSettings(), name, cvar_index); });
}
WEFT_MPI_ALIAS(T_cvar_get_index)

int PMPI_T_cvar_get_info(int cvar_index, char* name, int* name_len, int* verbosity, MPI_Datatype* datatype, MPI_T_enum* enumtype,
                         char* desc, int* desc_len, int* bind, int* scope) {
  return WhenInitialized([&] {
    if (cvar_index < 0 || cvar_index >= SettingCount()) return MPI_T_ERR_INVALID_INDEX;
    const auto& setting = AllSettings()[static_cast<size_t>(cvar_index)];
    GiveText(setting.name, name, name_len);
    GiveText(setting.help, desc, desc_len);
    Give<int>(verbosity, MPI_T_VERBOSITY_USER_BASIC);
    Give<MPI_Datatype>(datatype, MPI_CHAR);
    Give<MPI_T_enum>(enumtype, MPI_T_ENUM_NULL);
    Give<int>(bind, MPI_T_BIND_NO_OBJECT);
    Give<int>(scope, MPI_T_SCOPE_CONSTANT);
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_cvar_get_info)

int PMPI_T_cvar_handle_alloc(int cvar_index, void*, MPI_T_cvar_handle* handle, int* count) {
  return WhenInitialized([&] {
    if (cvar_index < 0 || cvar_index >= SettingCount()) return MPI_T_ERR_INVALID_INDEX;
    if (handle == nullptr || count == nullptr) return MPI_T_ERR_INVALID;
    *handle = new MPIR_T_cvar_handle_s{cvar_index, ValueOf(cvar_index)};
    *count = static_cast<int>((*handle)->value.size()) + 1;
    ControlHandles().insert(*handle);
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_cvar_handle_alloc)

int PMPI_T_cvar_handle_free(MPI_T_cvar_handle* handle) {
  if (handle == nullptr) return MPI_T_ERR_INVALID;
  return OnControlHandle(*handle, [&](MPIR_T_cvar_handle_s& freed) {
    ControlHandles().erase(&freed);
    delete &freed;
    *handle = MPI_T_CVAR_HANDLE_NULL;
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_cvar_handle_free)

int PMPI_T_cvar_read(MPI_T_cvar_handle handle, void* buf) {
  return OnControlHandle(handle, [&](MPIR_T_cvar_handle_s& h) {
    if (buf == nullptr) return MPI_T_ERR_INVALID;
    std::memcpy(buf, h.value.c_str(), h.value.size() + 1);
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_cvar_read)

int PMPI_T_cvar_write(MPI_T_cvar_handle handle, const void*) {
  return OnControlHandle(handle, [](MPIR_T_cvar_handle_s&) { return MPI_T_ERR_CVAR_SET_NEVER; });
}
WEFT_MPI_ALIAS(T_cvar_write)

// --- performance variables ---

int PMPI_T_pvar_get_num(int* num_pvar) {
  return WhenInitialized([&] {
    if (num_pvar == nullptr) return MPI_T_ERR_INVALID;
    *num_pvar = kVariableCount;
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_pvar_get_num)

int PMPI_T_pvar_get_index(const char* name, int var_class, int* pvar_index) {
  return WhenInitialized([&] {
    if (var_class != MPI_T_PVAR_CLASS_COUNTER) return MPI_T_ERR_INVALID_NAME;
    return FindName(kVariables, name, pvar_index);
  });
}
WEFT_MPI_ALIAS(T_pvar_get_index)

int PMPI_T_pvar_get_info(int pvar_index, char* name, int* name_len, int* verbosity, int* var_class, MPI_Datatype* datatype,
                         MPI_T_enum* enumtype, char* desc, int* desc_len, int* bind, int* readonly, int* continuous,
                         int* atomic) {
  return WhenInitialized([&] {
    if (pvar_index < 0 || pvar_index >= kVariableCount) return MPI_T_ERR_INVALID_INDEX;
    GiveText(kVariables[pvar_index].name, name, name_len);
    GiveText(kVariables[pvar_index].help, desc, desc_len);
    Give<int>(verbosity, MPI_T_VERBOSITY_USER_BASIC);
    Give<int>(var_class, MPI_T_PVAR_CLASS_COUNTER);
    Give<MPI_Datatype>(datatype, MPI_UNSIGNED_LONG_LONG);
    Give<MPI_T_enum>(enumtype, MPI_T_ENUM_NULL);
    Give<int>(bind, MPI_T_BIND_NO_OBJECT);
    Give(readonly, 0);  // may be reset
    Give(continuous, 1);
    Give(atomic, 1);
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
  if (session == nullptr) return MPI_T_ERR_INVALID;
  return OnSession(*session, [&](MPIR_T_pvar_session_s& s) {
    for (MPIR_T_pvar_handle_s* handle : s.handles) delete handle;
    Sessions().erase(&s);
    delete &s;
    *session = MPI_T_PVAR_SESSION_NULL;
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_pvar_session_free)

int PMPI_T_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void*, MPI_T_pvar_handle* handle, int* count) {
  return OnSession(session, [&](MPIR_T_pvar_session_s& s) {
    if (pvar_index < 0 || pvar_index >= kVariableCount) return MPI_T_ERR_INVALID_INDEX;
    if (handle == nullptr || count == nullptr) return MPI_T_ERR_INVALID;
    const auto counter = kVariables[pvar_index].counter;
    *handle = new MPIR_T_pvar_handle_s{session, counter, weft::mpi::g_counters.*counter};
    s.handles.insert(*handle);
    *count = 1;
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_pvar_handle_alloc)

int PMPI_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle* handle) {
  if (handle == nullptr) return MPI_T_ERR_INVALID;
  return OnVariable(session, *handle, false, [&](MPIR_T_pvar_handle_s& freed) {
    freed.session->handles.erase(&freed);
    delete &freed;
    *handle = MPI_T_PVAR_HANDLE_NULL;
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_pvar_handle_free)

// Counters are continuous: they run always.
int PMPI_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return OnVariable(session, handle, true, [](MPIR_T_pvar_handle_s&) { return MPI_T_ERR_PVAR_NO_STARTSTOP; });
}
WEFT_MPI_ALIAS(T_pvar_start)

int PMPI_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return OnVariable(session, handle, true, [](MPIR_T_pvar_handle_s&) { return MPI_T_ERR_PVAR_NO_STARTSTOP; });
}
WEFT_MPI_ALIAS(T_pvar_stop)

int PMPI_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf) {
  return OnVariable(session, handle, false, [&](MPIR_T_pvar_handle_s& h) {
    if (buf == nullptr) return MPI_T_ERR_INVALID;
    const unsigned long long value = Now(h);
    std::memcpy(buf, &value, sizeof value);
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_pvar_read)

int PMPI_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf) {
  return OnVariable(session, handle, false, [&](MPIR_T_pvar_handle_s& h) {
    if (buf == nullptr) return MPI_T_ERR_INVALID;
    const unsigned long long value = Now(h);
    std::memcpy(buf, &value, sizeof value);
    h.base += value;
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_pvar_readreset)

int PMPI_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return OnVariable(session, handle, true, [](MPIR_T_pvar_handle_s& h) {
    h.base += Now(h);
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_pvar_reset)

int PMPI_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void*) {
  return OnVariable(session, handle, false, [](MPIR_T_pvar_handle_s&) { return MPI_T_ERR_PVAR_NO_WRITE; });
}
WEFT_MPI_ALIAS(T_pvar_write)

// --- categories ---

int PMPI_T_category_get_num(int* num_cat) {
  return WhenInitialized([&] {
    if (num_cat == nullptr) return MPI_T_ERR_INVALID;
    *num_cat = kCategoryCount;
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_category_get_num)

int PMPI_T_category_get_index(const char* name, int* cat_index) {
  return WhenInitialized([&] { return FindName(kCategories, name, cat_index); });
}
WEFT_MPI_ALIAS(T_category_get_index)

int PMPI_T_category_get_info(int cat_index, char* name, int* name_len, char* desc, int* desc_len, int* num_cvars, int* num_pvars,
                             int* num_categories) {
  return WhenInitialized([&] {
    if (cat_index < 0 || cat_index >= kCategoryCount) return MPI_T_ERR_INVALID_INDEX;
    GiveText(kCategories[cat_index].name, name, name_len);
    GiveText(kCategories[cat_index].help, desc, desc_len);
    Give(num_cvars, cat_index == kSettingsCategory ? SettingCount() : 0);
    Give(num_pvars, cat_index == kSettingsCategory ? 0 : kVariableCount);
    Give(num_categories, 0);
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_category_get_info)

namespace {
int GiveIndices(int cat_index, int members, int len, int indices[]) {
  return WhenInitialized([&] {
    if (cat_index < 0 || cat_index >= kCategoryCount) return MPI_T_ERR_INVALID_INDEX;
    if (len > 0 && indices == nullptr) return MPI_T_ERR_INVALID;
    for (int i = 0; i < std::min(len, members); ++i) indices[i] = i;
    return MPI_SUCCESS;
  });
}
}  // namespace

int PMPI_T_category_get_cvars(int cat_index, int len, int indices[]) {
  return GiveIndices(cat_index, cat_index == kSettingsCategory ? SettingCount() : 0, len, indices);
}
WEFT_MPI_ALIAS(T_category_get_cvars)

int PMPI_T_category_get_pvars(int cat_index, int len, int indices[]) {
  return GiveIndices(cat_index, cat_index == kSettingsCategory ? 0 : kVariableCount, len, indices);
}
WEFT_MPI_ALIAS(T_category_get_pvars)

int PMPI_T_category_get_categories(int cat_index, int len, int indices[]) { return GiveIndices(cat_index, 0, len, indices); }
WEFT_MPI_ALIAS(T_category_get_categories)

int PMPI_T_category_get_events(int cat_index, int len, int indices[]) { return GiveIndices(cat_index, 0, len, indices); }
WEFT_MPI_ALIAS(T_category_get_events)

int PMPI_T_category_get_num_events(int cat_index, int* num_events) {
  Give(num_events, 0);
  return GiveIndices(cat_index, 0, 0, nullptr);
}
WEFT_MPI_ALIAS(T_category_get_num_events)

int PMPI_T_category_changed(int* update_number) {
  return WhenInitialized([&] {
    Give(update_number, 0);  // never
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_category_changed)

// --- enumerations, events and their sources: there are none, so every index and handle is wrong ---

namespace {
int None(int code) {
  return WhenInitialized([&] { return code; });
}
int NoneOf(int* count) {
  return WhenInitialized([&] {
    if (count == nullptr) return MPI_T_ERR_INVALID;
    *count = 0;
    return MPI_SUCCESS;
  });
}
}  // namespace

int PMPI_T_enum_get_info(MPI_T_enum, int*, char*, int*) { return None(MPI_T_ERR_INVALID_HANDLE); }
WEFT_MPI_ALIAS(T_enum_get_info)

int PMPI_T_enum_get_item(MPI_T_enum, int, int*, char*, int*) { return None(MPI_T_ERR_INVALID_HANDLE); }
WEFT_MPI_ALIAS(T_enum_get_item)

int PMPI_T_event_get_num(int* num_events) { return NoneOf(num_events); }
WEFT_MPI_ALIAS(T_event_get_num)

int PMPI_T_event_get_index(const char*, int*) { return None(MPI_T_ERR_INVALID_NAME); }
WEFT_MPI_ALIAS(T_event_get_index)

int PMPI_T_event_get_info(int, char*, int*, int*, MPI_Datatype[], MPI_Aint[], int*, MPI_T_enum*, MPI_Info*, char*, int*, int*) {
  return None(MPI_T_ERR_INVALID_INDEX);
}
WEFT_MPI_ALIAS(T_event_get_info)

int PMPI_T_event_handle_alloc(int, void*, MPI_Info, MPI_T_event_registration*) { return None(MPI_T_ERR_INVALID_INDEX); }
WEFT_MPI_ALIAS(T_event_handle_alloc)

int PMPI_T_event_handle_free(MPI_T_event_registration, void*, MPI_T_event_free_cb_function) {
  return None(MPI_T_ERR_INVALID_HANDLE);
}
WEFT_MPI_ALIAS(T_event_handle_free)

int PMPI_T_event_handle_get_info(MPI_T_event_registration, MPI_Info*) { return None(MPI_T_ERR_INVALID_HANDLE); }
WEFT_MPI_ALIAS(T_event_handle_get_info)

int PMPI_T_event_handle_set_info(MPI_T_event_registration, MPI_Info) { return None(MPI_T_ERR_INVALID_HANDLE); }
WEFT_MPI_ALIAS(T_event_handle_set_info)

int PMPI_T_event_register_callback(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info, void*, MPI_T_event_cb_function) {
  return None(MPI_T_ERR_INVALID_HANDLE);
}
WEFT_MPI_ALIAS(T_event_register_callback)

int PMPI_T_event_callback_get_info(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info*) {
  return None(MPI_T_ERR_INVALID_HANDLE);
}
WEFT_MPI_ALIAS(T_event_callback_get_info)

int PMPI_T_event_callback_set_info(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info) { return None(MPI_T_ERR_INVALID_HANDLE); }
WEFT_MPI_ALIAS(T_event_callback_set_info)

int PMPI_T_event_set_dropped_handler(MPI_T_event_registration, MPI_T_event_dropped_cb_function) {
  return None(MPI_T_ERR_INVALID_HANDLE);
}
WEFT_MPI_ALIAS(T_event_set_dropped_handler)

int PMPI_T_event_read(MPI_T_event_instance, int, void*) { return None(MPI_T_ERR_INVALID_HANDLE); }
WEFT_MPI_ALIAS(T_event_read)

int PMPI_T_event_copy(MPI_T_event_instance, void*) { return None(MPI_T_ERR_INVALID_HANDLE); }
WEFT_MPI_ALIAS(T_event_copy)

int PMPI_T_event_get_source(MPI_T_event_instance, int*) { return None(MPI_T_ERR_INVALID_HANDLE); }
WEFT_MPI_ALIAS(T_event_get_source)

int PMPI_T_event_get_timestamp(MPI_T_event_instance, MPI_Count*) { return None(MPI_T_ERR_INVALID_HANDLE); }
WEFT_MPI_ALIAS(T_event_get_timestamp)

int PMPI_T_source_get_num(int* num_sources) { return NoneOf(num_sources); }
WEFT_MPI_ALIAS(T_source_get_num)

int PMPI_T_source_get_info(int, char*, int*, char*, int*, MPI_T_source_order*, MPI_Count*, MPI_Count*, MPI_Info*) {
  return None(MPI_T_ERR_INVALID_INDEX);
}
WEFT_MPI_ALIAS(T_source_get_info)

int PMPI_T_source_get_timestamp(int, MPI_Count*) { return None(MPI_T_ERR_INVALID_INDEX); }
WEFT_MPI_ALIAS(T_source_get_timestamp)
