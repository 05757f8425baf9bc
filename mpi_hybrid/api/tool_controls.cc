#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/tool.h"
#include "mpi_hybrid/core/settings.h"

// Control variables: every setting that the MPI library reads. All are constant, since they are read from the environment at MPI_Init. A setting that
// is a choice is a number with an enumeration; others are text.
namespace weft::mpi::tool {
namespace {

struct Control {
  std::string name, initial, help;
  MPIR_T_enum_s* choices = nullptr;  // null: it is text
};

// "a|b|c", and before them the default, where that is none of them.
MPIR_T_enum_s* ChoicesOf(std::string_view name, std::string_view choices, std::string_view initial) {
  auto* made = new MPIR_T_enum_s{std::string(name), {}};
  for (;;) {
    const size_t bar = choices.find('|');
    made->items.emplace_back(choices.substr(0, bar));
    if (bar == choices.npos) break;
    choices.remove_prefix(bar + 1);
  }
  const bool listed = std::find(made->items.begin(), made->items.end(), initial) != made->items.end();
  if (!listed) made->items.emplace(made->items.begin(), initial);
  return made;
}

// Of the table of base/settings.h, whose lists of choices have no capitals.
bool IsReadByMpi(std::string_view name) { return name == "WEFT_SAME_HOST" || name == "WEFT_TRACE" || name.starts_with("WEFT_SCTP_"); }
bool ListsChoices(std::string_view values) {
  return values.find('|') != values.npos && values.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == values.npos;
}

const std::vector<Control>& Controls() {
  static const auto* const controls = [] {
    auto* made = new std::vector<Control>;
    for (const SettingInfo& setting : AllSettings()) {
      const std::string_view choices = setting.choices;
      made->push_back({setting.name, setting.initial, setting.help, choices.empty() ? nullptr : ChoicesOf(setting.name, choices, setting.initial)});
    }
    for (const weft::SettingInfo& setting : weft::AllSettings()) {
      if (!IsReadByMpi(setting.name)) continue;
      made->push_back({setting.name, setting.initial, setting.help,
                       ListsChoices(setting.values) ? ChoicesOf(setting.name, setting.values, setting.initial) : nullptr});
    }
    return made;
  }();
  return *controls;
}

bool IsIndex(int index) { return index >= 0 && index < ControlCount(); }

std::string ValueOf(const Control& control) {
  const char* value = secure_getenv(control.name.c_str());
  return value != nullptr && *value != '\0' ? value : control.initial;
}

// The number of the choice; what is none is refused, or as the default.
int ChoiceOf(const Control& control) {
  const std::vector<std::string>& items = control.choices->items;
  auto at = std::find(items.begin(), items.end(), ValueOf(control));
  if (at == items.end()) at = std::find(items.begin(), items.end(), control.initial);
  return static_cast<int>(at - items.begin());
}

}  // namespace

int ControlCount() { return static_cast<int>(Controls().size()); }

}  // namespace weft::mpi::tool

using namespace weft::mpi::tool;

// Handles are what these point to; what is handed out is remembered, so that others are told from them.
struct MPIR_T_cvar_handle_s {
  bool is_choice;
  int choice;
  std::string text;
};

namespace {

std::set<MPI_T_cvar_handle>& Handles() {
  static auto* handles = new std::set<MPI_T_cvar_handle>;
  return *handles;
}

template <typename Body>
int OnHandle(MPI_T_cvar_handle handle, Body body) {
  return Handles().count(handle) > 0 ? body(*handle) : MPI_T_ERR_INVALID_HANDLE;
}

}  // namespace

void weft::mpi::tool::DropControls() {
  for (MPI_T_cvar_handle handle : Handles()) delete handle;
  Handles().clear();
}

int PMPI_T_cvar_get_num(int* num_cvar) {
  return WhenInitialized([&] { return GiveCount(num_cvar, ControlCount()); });
}
WEFT_MPI_ALIAS(T_cvar_get_num)

int PMPI_T_cvar_get_index(const char* name, int* cvar_index) {
  return WhenInitialized([&] { return FindName(Controls(), name, cvar_index); });
}
WEFT_MPI_ALIAS(T_cvar_get_index)

int PMPI_T_cvar_get_info(int cvar_index, char* name, int* name_len, int* verbosity, MPI_Datatype* datatype, MPI_T_enum* enumtype,
                         char* desc, int* desc_len, int* bind, int* scope) {
  return WhenInitialized([&] {
    if (!IsIndex(cvar_index)) return MPI_T_ERR_INVALID_INDEX;
    const Control& control = Controls()[static_cast<size_t>(cvar_index)];
    GiveText(control.name.c_str(), name, name_len);
    GiveText(control.help.c_str(), desc, desc_len);
    Give<int>(verbosity, MPI_T_VERBOSITY_USER_BASIC);
    Give<MPI_Datatype>(datatype, control.choices != nullptr ? MPI_INT : MPI_CHAR);
    Give<MPI_T_enum>(enumtype, control.choices);
    Give<int>(bind, MPI_T_BIND_NO_OBJECT);
    Give<int>(scope, MPI_T_SCOPE_CONSTANT);
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_cvar_get_info)

int PMPI_T_cvar_handle_alloc(int cvar_index, void*, MPI_T_cvar_handle* handle, int* count) {
  return WhenInitialized([&] {
    if (!IsIndex(cvar_index)) return MPI_T_ERR_INVALID_INDEX;
    if (handle == nullptr || count == nullptr) return MPI_T_ERR_INVALID;
    const Control& control = Controls()[static_cast<size_t>(cvar_index)];
    const bool is_choice = control.choices != nullptr;
    *handle = new MPIR_T_cvar_handle_s{is_choice, is_choice ? ChoiceOf(control) : 0, is_choice ? "" : ValueOf(control)};
    *count = is_choice ? 1 : static_cast<int>((*handle)->text.size()) + 1;
    Handles().insert(*handle);
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_cvar_handle_alloc)

int PMPI_T_cvar_handle_free(MPI_T_cvar_handle* handle) {
  return WhenInitialized([&] {
    if (handle == nullptr) return MPI_T_ERR_INVALID;
    return OnHandle(*handle, [&](MPIR_T_cvar_handle_s& freed) {
      Handles().erase(&freed);
      delete &freed;
      *handle = MPI_T_CVAR_HANDLE_NULL;
      return MPI_SUCCESS;
    });
  });
}
WEFT_MPI_ALIAS(T_cvar_handle_free)

int PMPI_T_cvar_read(MPI_T_cvar_handle handle, void* buf) {
  return WhenInitialized([&] {
    return OnHandle(handle, [&](const MPIR_T_cvar_handle_s& h) {
      if (buf == nullptr) return MPI_T_ERR_INVALID;
      if (h.is_choice) {
        std::memcpy(buf, &h.choice, sizeof h.choice);
      } else {
        std::memcpy(buf, h.text.c_str(), h.text.size() + 1);
      }
      return MPI_SUCCESS;
    });
  });
}
WEFT_MPI_ALIAS(T_cvar_read)

int PMPI_T_cvar_write(MPI_T_cvar_handle handle, const void*) {
  return WhenInitialized([&] { return OnHandle(handle, [](const MPIR_T_cvar_handle_s&) { return MPI_T_ERR_CVAR_SET_NEVER; }); });
}
WEFT_MPI_ALIAS(T_cvar_write)
