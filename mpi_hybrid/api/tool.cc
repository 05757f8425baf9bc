#include "mpi_hybrid/api/tool.h"

#include <iterator>
#include <numeric>

#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/core/info.h"

namespace weft::mpi::tool {

int g_initialized = 0;

void GiveInfo(MPI_Info* info) {
  if (info != nullptr) *info = MakeInfo().handle;
}

namespace {

struct CategoryText {
  const char* name;
  const char* help;
};
constexpr CategoryText kCategories[] = {
    {"settings", "Environment variables that the MPI library reads."},
    {"traffic", "What this process sent and received."},
    {"one_sided", "What this process did in windows of others."},
};

// Calls body(category) for an index of one.
template <typename Body>
int OnCategory(int index, Body body) {
  return WhenInitialized([&] {
    if (index < 0 || index >= static_cast<int>(std::size(kCategories))) return MPI_T_ERR_INVALID_INDEX;
    return body(static_cast<Category>(index));
  });
}

std::vector<int> ControlsIn(Category category) {
  std::vector<int> all(category == Category::kSettings ? static_cast<size_t>(ControlCount()) : 0);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

int GiveIndices(const std::vector<int>& members, int len, int indices[]) {
  if (len > 0 && indices == nullptr) return MPI_T_ERR_INVALID;
  std::copy_n(members.begin(), std::clamp<ptrdiff_t>(len, 0, std::ssize(members)), indices);
  return MPI_SUCCESS;
}

// One thread while MPI runs for one: the library's lock is free of charge then, and nobody takes it.
int LevelFor(int required) {
  if (required < MPI_THREAD_MULTIPLE || LibraryLock::threads_enabled()) return required;
  if (g_library_state == LibraryState::kRunning) return MPI_THREAD_SERIALIZED;
  LibraryLock::EnableThreads();
  return MPI_THREAD_MULTIPLE;
}

}  // namespace
}  // namespace weft::mpi::tool

using namespace weft::mpi::tool;
using weft::mpi::LockGuard;

int PMPI_T_init_thread(int required, int* provided) {
  LockGuard lock;
  ++g_initialized;
  Give(provided, LevelFor(std::clamp<int>(required, MPI_THREAD_SINGLE, MPI_THREAD_MULTIPLE)));
  return MPI_SUCCESS;
}
WEFT_MPI_ALIAS(T_init_thread)

int PMPI_T_finalize(void) {
  return WhenInitialized([] {
    if (--g_initialized > 0) return MPI_SUCCESS;
    DropControls();
    DropCounters();
    DropEvents();
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_finalize)

// --- enumerations ---

int PMPI_T_enum_get_info(MPI_T_enum enumtype, int* num, char* name, int* name_len) {
  return WhenInitialized([&] {
    if (enumtype == MPI_T_ENUM_NULL) return MPI_T_ERR_INVALID_HANDLE;
    Give(num, static_cast<int>(enumtype->items.size()));
    GiveText(enumtype->name.c_str(), name, name_len);
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_enum_get_info)

int PMPI_T_enum_get_item(MPI_T_enum enumtype, int indx, int* value, char* name, int* name_len) {
  return WhenInitialized([&] {
    if (enumtype == MPI_T_ENUM_NULL) return MPI_T_ERR_INVALID_HANDLE;
    if (indx < 0 || indx >= static_cast<int>(enumtype->items.size())) return MPI_T_ERR_INVALID_ITEM;
    Give(value, indx);
    GiveText(enumtype->items[static_cast<size_t>(indx)].c_str(), name, name_len);
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_enum_get_item)

// --- categories ---

int PMPI_T_category_get_num(int* num_cat) {
  return WhenInitialized([&] { return GiveCount(num_cat, static_cast<int>(std::size(kCategories))); });
}
WEFT_MPI_ALIAS(T_category_get_num)

int PMPI_T_category_get_index(const char* name, int* cat_index) {
  return WhenInitialized([&] { return FindName(kCategories, name, cat_index); });
}
WEFT_MPI_ALIAS(T_category_get_index)

int PMPI_T_category_get_info(int cat_index, char* name, int* name_len, char* desc, int* desc_len, int* num_cvars, int* num_pvars,
                             int* num_categories) {
  return OnCategory(cat_index, [&](Category category) {
    GiveText(kCategories[cat_index].name, name, name_len);
    GiveText(kCategories[cat_index].help, desc, desc_len);
    Give(num_cvars, static_cast<int>(ControlsIn(category).size()));
    Give(num_pvars, static_cast<int>(CountersIn(category).size()));
    Give(num_categories, 0);
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_category_get_info)

int PMPI_T_category_get_cvars(int cat_index, int len, int indices[]) {
  return OnCategory(cat_index, [&](Category category) { return GiveIndices(ControlsIn(category), len, indices); });
}
WEFT_MPI_ALIAS(T_category_get_cvars)

int PMPI_T_category_get_pvars(int cat_index, int len, int indices[]) {
  return OnCategory(cat_index, [&](Category category) { return GiveIndices(CountersIn(category), len, indices); });
}
WEFT_MPI_ALIAS(T_category_get_pvars)

int PMPI_T_category_get_events(int cat_index, int len, int indices[]) {
  return OnCategory(cat_index, [&](Category category) { return GiveIndices(EventsIn(category), len, indices); });
}
WEFT_MPI_ALIAS(T_category_get_events)

int PMPI_T_category_get_num_events(int cat_index, int* num_events) {
  return OnCategory(cat_index, [&](Category category) { return GiveCount(num_events, static_cast<int>(EventsIn(category).size())); });
}
WEFT_MPI_ALIAS(T_category_get_num_events)

int PMPI_T_category_get_categories(int cat_index, int len, int indices[]) {
  return OnCategory(cat_index, [&](Category) { return GiveIndices({}, len, indices); });
}
WEFT_MPI_ALIAS(T_category_get_categories)

int PMPI_T_category_changed(int* update_number) {
  return WhenInitialized([&] {
    Give(update_number, 0);  // never
    return MPI_SUCCESS;
  });
}
WEFT_MPI_ALIAS(T_category_changed)
