#ifndef MPI_HYBRID_API_TOOL_H_
#define MPI_HYBRID_API_TOOL_H_

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "mpi_hybrid/core/lock.h"

// MPI_T, the tool interface (MPI 4.0 section 15.3): control variables from settings (tool_controls.cc), performance
// variables from counters (tool_counters.cc), events (tool_events.cc), and categories (tool.cc). Its functions return
// codes and call no error handler.

// An MPI_T_enum: item i has the value i. Lives forever.
struct MPIR_T_enum_s {
  std::string name;
  std::vector<std::string> items;
};

namespace weft::mpi::tool {

extern int g_initialized;  // number of MPI_T_init_thread calls minus MPI_T_finalize calls

// Entry of a function: takes the lock.
template <typename Body>
int WhenInitialized(Body body) {
  LockGuard lock;
  return g_initialized > 0 ? body() : MPI_T_ERR_NOT_INITIALIZED;
}

// Copies as much of `text` as fits into `*length` bytes including the terminating zero, and sets `*length` to the full
// length including the zero. Both pointers may be null.
inline void GiveText(const char* text, char* to, int* length) {
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

template <typename Table>
int FindName(const Table& table, const char* name, int* index) {
  if (name == nullptr || index == nullptr) return MPI_T_ERR_INVALID;
  int at = 0;
  for (const auto& entry : table) {
    if (std::string_view(entry.name) == name) {
      *index = at;
      return MPI_SUCCESS;
    }
    ++at;
  }
  return MPI_T_ERR_INVALID_NAME;
}

inline int GiveCount(int* to, int count) {
  if (to == nullptr) return MPI_T_ERR_INVALID;
  *to = count;
  return MPI_SUCCESS;
}

// Makes a new, empty info object, for functions that return one.
void GiveInfo(MPI_Info* info);

enum class Category { kSettings, kTraffic, kOneSided };

int ControlCount();
// The indices of the variables and events in a category.
std::vector<int> CountersIn(Category category);
std::vector<int> EventsIn(Category category);

// Called by the last MPI_T_finalize: frees all that the tool did not free.
void DropControls();
void DropCounters();
void DropEvents();

}  // namespace weft::mpi::tool

#endif  // MPI_HYBRID_API_TOOL_H_
