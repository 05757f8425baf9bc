#include "mpi_hybrid/rma/window.h"

#include <climits>
#include <cstring>
#include <string>

#include "mpi_hybrid/api/bindings.h"
#include "mpi_hybrid/api/comm_arguments.h"
#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/coll/spanning.h"
#include "mpi_hybrid/rma/window_hints.h"

// Windows: making, freeing, asking (MPI 4.0 sections 12.2 and 7.8).
namespace weft::mpi {
namespace {

Error CheckWindowSize(MPI_Aint size) {
  if (size >= 0) return {};
  return Error(MPI_ERR_SIZE, "size " + std::to_string(size) + " is negative");
}

Error CheckWindowArguments(MPI_Aint size, MPI_Aint unit, const Comm& comm, const MPI_Win* win) {
  WEFT_MPI_TRY(CheckIntra(comm));
  WEFT_MPI_TRY(CheckWithinClient(comm, "windows"));
  WEFT_MPI_TRY(CheckWindowSize(size));
  WEFT_MPI_TRY(CheckNotNull(win, "win"));
  if (unit > 0 && unit <= INT_MAX) return {};
  return Error(MPI_ERR_DISP, "disp_unit " + std::to_string(unit) + " is not positive or above " + std::to_string(INT_MAX));
}

int CreateOver(const char* name, void* base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  return OnComm(name, comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckWindowArguments(size, unit, c, win));
    if (base == nullptr && size > 0) return Error(MPI_ERR_BASE, "base is null, size is " + std::to_string(size));
    Info* hints;
    WEFT_MPI_TRY(FindInfo(info, &hints));
    Ref<Window> made;
    WEFT_MPI_TRY(CreateWindow(base, size, static_cast<int>(unit), c, hints, &made));
    *win = Window::Give(made);
    return {};
  });
}

using Maker = Error(MPI_Aint size, int unit, Comm& comm, const Info* info, Ref<Window>* made);

int AllocateOver(const char* name, Maker* make, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* baseptr,
                 MPI_Win* win) {
  return OnComm(name, comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckWindowArguments(size, unit, c, win));
    WEFT_MPI_TRY(CheckNotNull(baseptr, "baseptr"));
    Info* hints;
    WEFT_MPI_TRY(FindInfo(info, &hints));
    Ref<Window> made;
    WEFT_MPI_TRY(make(size, static_cast<int>(unit), c, hints, &made));
    *static_cast<void**>(baseptr) = made->base;
    *win = Window::Give(made);
    return {};
  });
}

template <typename Unit>
int QueryShared(const char* name, MPI_Win win, int rank, MPI_Aint* size, Unit* unit, void* baseptr) {
  return OnWin(name, win, [&](Window& w) -> Error {
    WEFT_MPI_TRY(CheckNotNull(size, "size"));
    WEFT_MPI_TRY(CheckNotNull(unit, "disp_unit"));
    WEFT_MPI_TRY(CheckNotNull(baseptr, "baseptr"));
    int its_unit = 1;
    WEFT_MPI_TRY(w.SharedQuery(rank, size, &its_unit, static_cast<void**>(baseptr)));
    *unit = its_unit;
    return {};
  });
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

WEFT_MPI_BOTH(Win_create, (void* base, MPI_Aint size, Count disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win* win),
              CreateOver(name, base, size, disp_unit, info, comm, win))

WEFT_MPI_BOTH(Win_allocate, (MPI_Aint size, Count disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* win),
              AllocateOver(name, AllocateWindow, size, disp_unit, info, comm, baseptr, win))

WEFT_MPI_BOTH(Win_allocate_shared,
              (MPI_Aint size, Count disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* win),
              AllocateOver(name, AllocateSharedWindow, size, disp_unit, info, comm, baseptr, win))

WEFT_MPI_BOTH(Win_shared_query, (MPI_Win win, int rank, MPI_Aint* size, Count* disp_unit, void* baseptr),
              QueryShared(name, win, rank, size, disp_unit, baseptr))

int PMPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  return OnComm("MPI_Win_create_dynamic", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckWindowArguments(0, 1, c, win));
    Info* hints;
    WEFT_MPI_TRY(FindInfo(info, &hints));
    Ref<Window> made;
    WEFT_MPI_TRY(CreateDynamicWindow(c, hints, &made));
    *win = Window::Give(made);
    return {};
  });
}
WEFT_MPI_ALIAS(Win_create_dynamic)

int PMPI_Win_attach(MPI_Win win, void* base, MPI_Aint size) {
  return OnWin("MPI_Win_attach", win, [&](Window& w) -> Error {
    WEFT_MPI_TRY(CheckWindowSize(size));
    if (size > 0) WEFT_MPI_TRY(CheckNotNull(base, "base"));
    return w.Attach(base, size);
  });
}
WEFT_MPI_ALIAS(Win_attach)

int PMPI_Win_detach(MPI_Win win, const void* base) {
  return OnWin("MPI_Win_detach", win, [&](Window& w) { return w.Detach(base); });
}
WEFT_MPI_ALIAS(Win_detach)

// Attributes go first; a delete function that fails leaves the window as it is.
int PMPI_Win_free(MPI_Win* win) {
  if (win == nullptr) return Anywhere("MPI_Win_free", [&] { return CheckNotNull(win, "win"); });
  Ref<Window> over;  // also where others died meanwhile: nobody can free it together any more. Its error handler still has it.
  const int code = OnWin("MPI_Win_free", *win, [&](Window& w) -> Error {
    const Ref<Window> alive(&w);
    WEFT_MPI_TRY(w.MayFree());
    WEFT_MPI_TRY(w.attributes.DeleteAll(w.handle));
    over = alive;
    return w.Free();
  });
  if (over == nullptr) return code;
  const LockGuard lock;
  Window::TakeBack(*over);
  over = nullptr;
  *win = MPI_WIN_NULL;
  return code;
}
WEFT_MPI_ALIAS(Win_free)

int PMPI_Win_get_group(MPI_Win win, MPI_Group* group) {
  return OnWin("MPI_Win_get_group", win, [&](Window& w) -> Error {
    WEFT_MPI_TRY(CheckNotNull(group, "group"));
    *group = Group::Give(w.comm->local);
    return {};
  });
}
WEFT_MPI_ALIAS(Win_get_group)

int PMPI_Win_set_name(MPI_Win win, const char* win_name) {
  return OnWin("MPI_Win_set_name", win, [&](Window& w) -> Error {
    WEFT_MPI_TRY(CheckNotNull(win_name, "win_name"));
    w.name.assign(win_name, strnlen(win_name, MPI_MAX_OBJECT_NAME - 1));
    return {};
  });
}
WEFT_MPI_ALIAS(Win_set_name)

int PMPI_Win_get_name(MPI_Win win, char* win_name, int* resultlen) {
  return OnWin("MPI_Win_get_name", win, [&](Window& w) -> Error {
    WEFT_MPI_TRY(CheckNotNull(win_name, "win_name"));
    WEFT_MPI_TRY(CheckNotNull(resultlen, "resultlen"));
    std::memcpy(win_name, w.name.c_str(), w.name.size() + 1);
    *resultlen = static_cast<int>(w.name.size());
    return {};
  });
}
WEFT_MPI_ALIAS(Win_get_name)

int PMPI_Win_set_info(MPI_Win win, MPI_Info info) {
  return OnWin("MPI_Win_set_info", win, [&](Window& w) -> Error {
    Info* hints;
    WEFT_MPI_TRY(FindInfo(info, &hints));
    if (hints != nullptr) ChangeHintsOfWindow(*w.info, *hints);
    return {};
  });
}
WEFT_MPI_ALIAS(Win_set_info)

int PMPI_Win_get_info(MPI_Win win, MPI_Info* info_used) {
  return OnWin("MPI_Win_get_info", win, [&](Window& w) -> Error {
    WEFT_MPI_TRY(CheckNotNull(info_used, "info_used"));
    Info& made = MakeInfo();
    made.entries = w.info->entries;
    *info_used = made.handle;
    return {};
  });
}
WEFT_MPI_ALIAS(Win_get_info)
