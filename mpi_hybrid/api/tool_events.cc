#include <time.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/tool.h"
#include "mpi_hybrid/core/tool_events.h"

// Events (MPI 4.0 section 15.3.8). They happen inside of MPI, in the middle of its work, so that a callback is called there and then, with the lock, and
// may call what MPI_T_CB_REQUIRE_MPI_RESTRICTED allows. One of MPI_T_CB_REQUIRE_NONE could call anything: it is not called, and the event counts as
// dropped, of which the dropped handler hears.
namespace weft::mpi::tool {
namespace {

// What tools see of an event, element by element.
struct UnexpectedMessage {
  int source, tag;
  unsigned context;
  unsigned long long bytes;
};
struct ProcessDied {
  int process;
};

struct Element {
  MPI_Datatype type;
  size_t size;
  MPI_Aint displacement;
};
struct Event {
  const char* name;
  const char* help;
  std::vector<Element> elements;
  MPIR_T_enum_s names;  // of the elements
  size_t bytes;
};

// By ToolEvent::Kind.
const std::array<Event, 2>& Events() {
  static const auto* const events = new std::array<Event, 2>{{
      {"unexpected_message",
       "A message arrived, or was announced, before its receive was posted: the sender's rank in the communicator, the tag, the context (a number of the communicator "
       "that its processes agreed on), bytes.",
       {{MPI_INT, sizeof(int), offsetof(UnexpectedMessage, source)},
        {MPI_INT, sizeof(int), offsetof(UnexpectedMessage, tag)},
        {MPI_UNSIGNED, sizeof(unsigned), offsetof(UnexpectedMessage, context)},
        {MPI_UNSIGNED_LONG_LONG, sizeof(unsigned long long), offsetof(UnexpectedMessage, bytes)}},
       {"elements of unexpected_message", {"source", "tag", "context", "bytes"}},
       sizeof(UnexpectedMessage)},
      {"process_died",
       "A process died: its rank in MPI_COMM_WORLD; numbers from its size on are processes of other jobs.",
       {{MPI_INT, sizeof(int), offsetof(ProcessDied, process)}},
       {"elements of process_died", {"process"}},
       sizeof(ProcessDied)},
  }};
  return *events;
}

constexpr int kSources = 1;
constexpr MPI_Count kTicksPerSecond = 1000000000;
constexpr int kLevels = 4;  // of callback safety

MPI_Count Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kTicksPerSecond + now.tv_nsec;
}

bool IsIndex(int index) { return index >= 0 && index < static_cast<int>(Events().size()); }
bool IsLevel(int safety) { return safety >= 0 && safety < kLevels; }

}  // namespace

std::vector<int> EventsIn(Category category) {
  return category == Category::kTraffic ? std::vector<int>{0, 1} : std::vector<int>{};
}

}  // namespace weft::mpi::tool

using namespace weft::mpi::tool;
using weft::mpi::ToolEvent;
using weft::mpi::ToolEvents;

struct MPIR_T_event_registration_s {
  struct Callback {
    MPI_T_event_cb_function* function = nullptr;
    void* data = nullptr;
  };

  int event;
  std::array<Callback, kLevels> callbacks{};  // by safety
  MPI_T_event_dropped_cb_function* on_dropped = nullptr;
  MPI_Count dropped = 0;  // that nobody was told of
};

struct MPIR_T_event_instance_s {
  const Event* event;
  MPI_Count time;
  std::array<uint8_t, sizeof(UnexpectedMessage)> data;
};

namespace {

using Registration = MPIR_T_event_registration_s;

std::set<Registration*>& Registrations() {
  static auto* registrations = new std::set<Registration*>;
  return *registrations;
}

MPI_T_event_instance g_instance = nullptr;  // while its callback runs

MPIR_T_event_instance_s Instance(const ToolEvent& event) {
  MPIR_T_event_instance_s made{&Events()[static_cast<size_t>(event.kind)], Now(), {}};
  if (event.kind == ToolEvent::Kind::kProcessDied) {
    const ProcessDied seen{event.process};
    std::memcpy(made.data.data(), &seen, sizeof seen);
  } else {
    UnexpectedMessage seen{};
    seen.source = event.source, seen.tag = event.tag, seen.context = event.context, seen.bytes = event.bytes;
    std::memcpy(made.data.data(), &seen, sizeof seen);
  }
  return made;
}

void Drop(Registration& registration, void* data) {
  ++registration.dropped;
  if (registration.on_dropped == nullptr) return;
  registration.on_dropped(std::exchange(registration.dropped, 0), &registration, 0, MPI_T_CB_REQUIRE_MPI_RESTRICTED, data);
}

void Deliver(Registration& registration, MPIR_T_event_instance_s& instance) {
  const auto first = registration.callbacks.begin();
  const auto found = std::find_if(first + MPI_T_CB_REQUIRE_MPI_RESTRICTED, registration.callbacks.end(),
                                  [](const Registration::Callback& callback) { return callback.function != nullptr; });
  if (found == registration.callbacks.end()) {
    if (first->function != nullptr) Drop(registration, first->data);
    return;
  }
  const MPI_T_event_instance outer = std::exchange(g_instance, &instance);
  found->function(&instance, &registration, MPI_T_CB_REQUIRE_MPI_RESTRICTED, found->data);
  g_instance = outer;
}

void OnEvent(const ToolEvent& event) {
  MPIR_T_event_instance_s instance = Instance(event);
  const std::vector<Registration*> all(Registrations().begin(), Registrations().end());  // a callback may free some
  for (Registration* registration : all) {
    if (Registrations().count(registration) > 0 && registration->event == static_cast<int>(event.kind)) Deliver(*registration, instance);
  }
}

template <typename Body>
int OnRegistration(MPI_T_event_registration handle, Body body) {
  return WhenInitialized([&] { return Registrations().count(handle) > 0 ? body(*handle) : MPI_T_ERR_INVALID_HANDLE; });
}

template <typename Body>
int OnInstance(MPI_T_event_instance instance, Body body) {
  return WhenInitialized([&] { return instance != nullptr && instance == g_instance ? body(*instance) : MPI_T_ERR_INVALID_HANDLE; });
}

}  // namespace

void weft::mpi::tool::DropEvents() {
  ToolEvents::Listen(nullptr);
  for (Registration* registration : Registrations()) delete registration;
  Registrations().clear();
}

// --- kinds of events ---

int PMPI_T_event_get_num(int* num_events) {
  return WhenInitialized([&] { return GiveCount(num_events, static_cast<int>(Events().size())); });
}
WEFT_MPI_ALIAS(T_event_get_num)

int PMPI_T_event_get_index(const char* name, int* event_index) {
  return WhenInitialized([&] { return FindName(Events(), name, event_index); });
}
WEFT_MPI_ALIAS(T_event_get_index)

// `num_elements` says how many the arrays have room for, and hears how many there are.
int PMPI_T_event_get_info(int event_index, char* name, int* name_len, int* verbosity, MPI_Datatype array_of_datatypes[],
                          MPI_Aint array_of_displacements[], int* num_elements, MPI_T_enum* enumtype, MPI_Info* info, char* desc, int* desc_len,
                          int* bind) {
  return WhenInitialized([&] {
    if (!IsIndex(event_index)) return MPI_T_ERR_INVALID_INDEX;
    const Event& event = Events()[static_cast<size_t>(event_index)];
    GiveText(event.name, name, name_len);
    GiveText(event.help, desc, desc_len);
    Give<int>(verbosity, MPI_T_VERBOSITY_USER_BASIC);
    const int count = static_cast<int>(event.elements.size());
    for (int i = 0; num_elements != nullptr && i < std::min(*num_elements, count); ++i) {
      const Element& element = event.elements[static_cast<size_t>(i)];
      if (array_of_datatypes != nullptr) array_of_datatypes[i] = element.type;
      if (array_of_displacements != nullptr) array_of_displacements[i] = element.displacement;
    }
    Give(num_elements, count);
    Give<MPI_T_enum>(enumtype, const_cast<MPIR_T_enum_s*>(&event.names));
    GiveInfo(info);
    Give<int>(bind, MPI_T_BIND_NO_OBJECT);
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_event_get_info)

// --- registrations ---

int PMPI_T_event_handle_alloc(int event_index, void*, MPI_Info, MPI_T_event_registration* event_registration) {
  return WhenInitialized([&] {
    if (!IsIndex(event_index)) return MPI_T_ERR_INVALID_INDEX;
    if (event_registration == nullptr) return MPI_T_ERR_INVALID;
    *event_registration = new Registration{.event = event_index};
    Registrations().insert(*event_registration);
    ToolEvents::Listen(OnEvent);
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_event_handle_alloc)

// No event comes any more: the callback is called from here, where all is allowed.
int PMPI_T_event_handle_free(MPI_T_event_registration event_registration, void* user_data, MPI_T_event_free_cb_function free_cb_function) {
  const int code = OnRegistration(event_registration, [](Registration& freed) {
    Registrations().erase(&freed);
    if (Registrations().empty()) ToolEvents::Listen(nullptr);
    return MPI_SUCCESS;
  });
  if (code != MPI_SUCCESS) return code;
  if (free_cb_function != nullptr) free_cb_function(event_registration, MPI_T_CB_REQUIRE_NONE, user_data);
  delete event_registration;
  return MPI_SUCCESS;
}
WEFT_MPI_ALIAS(T_event_handle_free)

int PMPI_T_event_handle_get_info(MPI_T_event_registration event_registration, MPI_Info* info_used) {
  return OnRegistration(event_registration, [&](Registration&) {
    if (info_used == nullptr) return MPI_T_ERR_INVALID;
    GiveInfo(info_used);  // no hint is known
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_event_handle_get_info)

int PMPI_T_event_handle_set_info(MPI_T_event_registration event_registration, MPI_Info) {
  return OnRegistration(event_registration, [](Registration&) { return MPI_SUCCESS; });
}
WEFT_MPI_ALIAS(T_event_handle_set_info)

// A null function takes away the one of that level.
int PMPI_T_event_register_callback(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety, MPI_Info, void* user_data,
                                   MPI_T_event_cb_function event_cb_function) {
  return OnRegistration(event_registration, [&](Registration& registration) {
    if (!IsLevel(cb_safety)) return MPI_T_ERR_INVALID;
    registration.callbacks[cb_safety] = {event_cb_function, user_data};
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_event_register_callback)

int PMPI_T_event_callback_get_info(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety, MPI_Info* info_used) {
  return OnRegistration(event_registration, [&](Registration&) {
    if (!IsLevel(cb_safety) || info_used == nullptr) return MPI_T_ERR_INVALID;
    GiveInfo(info_used);
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_event_callback_get_info)

int PMPI_T_event_callback_set_info(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety, MPI_Info) {
  return OnRegistration(event_registration, [&](Registration&) { return IsLevel(cb_safety) ? MPI_SUCCESS : MPI_T_ERR_INVALID; });
}
WEFT_MPI_ALIAS(T_event_callback_set_info)

int PMPI_T_event_set_dropped_handler(MPI_T_event_registration event_registration, MPI_T_event_dropped_cb_function dropped_cb_function) {
  return OnRegistration(event_registration, [&](Registration& registration) {
    registration.on_dropped = dropped_cb_function;
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_event_set_dropped_handler)

// --- instances, while a callback runs ---

int PMPI_T_event_read(MPI_T_event_instance event_instance, int element_index, void* buffer) {
  return OnInstance(event_instance, [&](const MPIR_T_event_instance_s& instance) {
    const std::vector<Element>& elements = instance.event->elements;
    if (element_index < 0 || element_index >= std::ssize(elements)) return MPI_T_ERR_INVALID_INDEX;
    if (buffer == nullptr) return MPI_T_ERR_INVALID;
    const Element& element = elements[static_cast<size_t>(element_index)];
    std::memcpy(buffer, instance.data.data() + element.displacement, element.size);
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_event_read)

int PMPI_T_event_copy(MPI_T_event_instance event_instance, void* buffer) {
  return OnInstance(event_instance, [&](const MPIR_T_event_instance_s& instance) {
    if (buffer == nullptr) return MPI_T_ERR_INVALID;
    std::memcpy(buffer, instance.data.data(), instance.event->bytes);
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_event_copy)

int PMPI_T_event_get_source(MPI_T_event_instance event_instance, int* source_index) {
  return OnInstance(event_instance, [&](const MPIR_T_event_instance_s&) { return GiveCount(source_index, 0); });
}
WEFT_MPI_ALIAS(T_event_get_source)

int PMPI_T_event_get_timestamp(MPI_T_event_instance event_instance, MPI_Count* event_timestamp) {
  return OnInstance(event_instance, [&](const MPIR_T_event_instance_s& instance) {
    if (event_timestamp == nullptr) return MPI_T_ERR_INVALID;
    *event_timestamp = instance.time;
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_event_get_timestamp)

// --- sources: the library itself ---

int PMPI_T_source_get_num(int* num_sources) {
  return WhenInitialized([&] { return GiveCount(num_sources, kSources); });
}
WEFT_MPI_ALIAS(T_source_get_num)

int PMPI_T_source_get_info(int source_index, char* name, int* name_len, char* desc, int* desc_len, MPI_T_source_order* ordering,
                           MPI_Count* ticks_per_second, MPI_Count* max_ticks, MPI_Info* info) {
  return WhenInitialized([&] {
    if (source_index < 0 || source_index >= kSources) return MPI_T_ERR_INVALID_INDEX;
    GiveText("library", name, name_len);
    GiveText("The MPI library, by the clock CLOCK_MONOTONIC.", desc, desc_len);
    Give(ordering, MPI_T_SOURCE_ORDERED);
    Give(ticks_per_second, kTicksPerSecond);
    Give<MPI_Count>(max_ticks, INT64_MAX);
    GiveInfo(info);
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_source_get_info)

int PMPI_T_source_get_timestamp(int source_index, MPI_Count* timestamp) {
  return WhenInitialized([&] {
    if (source_index < 0 || source_index >= kSources) return MPI_T_ERR_INVALID_INDEX;
    if (timestamp == nullptr) return MPI_T_ERR_INVALID;
    *timestamp = Now();
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_source_get_timestamp)
