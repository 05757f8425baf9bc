#include "mpi_hybrid/core/attributes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "impi/job/colours.h"
#include "mpi_hybrid/api/bindings.h"
#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/language_hooks.h"
#include "mpi_hybrid/api/type_arguments.h"
#include "mpi_hybrid/core/impi_world.h"
#include "mpi_hybrid/core/job.h"

// Attributes of communicators, datatypes and windows (MPI 4.0 sections 7.7 and 12.2.6), with the names that MPI-2
// deprecated.
namespace weft::mpi {
namespace {

using CopyFunction = int(int, int, void*, void*, void*, int*);
using DeleteFunction = int(int, int, void*, void*);

const char* OwnerName(AttributeOwner owner) {
  switch (owner) {
    case AttributeOwner::kComm:
      return "communicators";
    case AttributeOwner::kType:
      return "datatypes";
    default:
      return "windows";
  }
}

// Predefined keyvals end in an odd digit in C and in the next even one in Fortran.
bool IsPredefined(int keyval) { return IsKind(keyval, HandleKind::kKeyval) && IsBuiltin(keyval); }
int CNumber(int keyval) { return (keyval & 1) != 0 ? keyval : keyval - 1; }

Error FindKeyval(int handle, AttributeOwner owner, Keyval** keyval) {
  if (handle == MPI_KEYVAL_INVALID) return Error(MPI_ERR_KEYVAL, "keyval is MPI_KEYVAL_INVALID");
  *keyval = Keyval::Find(handle);
  if (*keyval == nullptr)
    return Error(MPI_ERR_KEYVAL, "keyval " + std::to_string(handle) + " is not a keyval (never made, or freed)");
  if ((*keyval)->owner == owner) return {};
  return Error(MPI_ERR_KEYVAL, "keyval " + std::to_string(handle) + " is for " + OwnerName((*keyval)->owner) +
                                   ", not " + OwnerName(owner));
}

Error FindChangeable(int handle, AttributeOwner owner, Keyval** keyval) {
  if (IsPredefined(handle))
    return Error(MPI_ERR_KEYVAL,
                 "keyval " + std::to_string(handle) + " is predefined: its attribute cannot be changed");
  return FindKeyval(handle, owner, keyval);
}

int CreateKeyval(const char* name, AttributeOwner owner, CopyFunction* copy, DeleteFunction* remove, int* keyval,
                 void* extra_state) {
  return Anywhere(name, [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(keyval, "keyval"));
    *keyval = MakeKeyval(owner, copy, remove, extra_state).handle;
    return {};
  });
}

int FreeKeyval(const char* name, AttributeOwner owner, int* keyval) {
  return Anywhere(name, [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(keyval, "keyval"));
    Keyval* found;
    if (IsPredefined(*keyval))
      return Error(MPI_ERR_KEYVAL, "keyval " + std::to_string(*keyval) + " is predefined: it cannot be freed");
    WEFT_MPI_TRY(FindKeyval(*keyval, owner, &found));
    FreeKeyval(*found);
    *keyval = MPI_KEYVAL_INVALID;
    return {};
  });
}

// C programs get the address of a value, which is a copy: they cannot change it.
void GiveInt(int value, AttributeType as, int* copy, void* out) {
  *copy = value;
  void* given = as == AttributeType::kPointer ? copy : reinterpret_cast<void*>(static_cast<intptr_t>(value));
  std::memcpy(out, &given, sizeof given);
}

// Null: the job has no other client, or the communicator has processes of other jobs. The group of an intercommunicator is the local one.
int* ColoursOf(Comm& comm) {
  const ImpiWorld* const world = ThisJob().impi.get();
  if (world == nullptr) return nullptr;
  if (comm.colours == nullptr) {
    std::vector<impi::WorldRank> group;
    for (const ProcessId process : comm.local->members) {
      if (!world->IsMember(process)) return nullptr;
      group.push_back(world->RankOf(process));
    }
    const impi::Colours colours = impi::ColoursOf(world->job(), group, world->self());
    comm.colours = std::make_unique<std::array<int, 4>>(std::array{colours.client_size, colours.client_color, colours.host_size, colours.host_color});
  }
  return comm.colours->data();
}

Error GetPredefinedOfComm(Comm& comm, int keyval, AttributeType as, void* out, int* flag) {
  static int copies[16];
  const int number = CNumber(keyval);
  int* copy = &copies[number & 15];
  *flag = 1;
  switch (number) {
    case MPI_TAG_UB:
      GiveInt(ThisJob().impi == nullptr ? kLargestTag : std::min(kLargestTag, ThisJob().impi->job().limits().tag), as, copy, out);
      return {};
    case MPI_HOST:
      GiveInt(MPI_PROC_NULL, as, copy, out);
      return {};
    case MPI_IO:
      GiveInt(MPI_ANY_SOURCE, as, copy, out);
      return {};
    case MPI_WTIME_IS_GLOBAL:
      GiveInt(0, as, copy, out);
      return {};
    case MPI_LASTUSEDCODE:
      GiveInt(LastUsedCode(), as, copy, out);
      return {};
    case MPI_UNIVERSE_SIZE:
      *flag = ThisJob().universe_size >= 0;
      if (*flag) GiveInt(ThisJob().universe_size, as, copy, out);
      return {};
    case MPI_APPNUM:
      *flag = ThisJob().appnum >= 0;
      if (*flag) GiveInt(ThisJob().appnum, as, copy, out);
      return {};
    case IMPI_CLIENT_SIZE:
    case IMPI_CLIENT_COLOR:
    case IMPI_HOST_SIZE:
    case IMPI_HOST_COLOR: {
      int* const colours = ColoursOf(comm);
      *flag = colours != nullptr;
      if (*flag) {
        int* const own = colours + (number - IMPI_CLIENT_SIZE) / 2;
        GiveInt(*own, as, own, out);
      }
      return {};
    }
    default:
      *flag = 0;
      return Error(MPI_ERR_KEYVAL, "keyval " + std::to_string(keyval) + " is not one of a communicator");
  }
}

Error GetPredefinedOfWindow(Window& window, int keyval, AttributeType as, void* out, int* flag) {
  *flag = 1;
  void* given = nullptr;
  const bool address = as == AttributeType::kPointer;
  auto integer = [](intptr_t value) { return reinterpret_cast<void*>(value); };
  switch (CNumber(keyval)) {
    case MPI_WIN_BASE:
      given = window.base;
      break;
    case MPI_WIN_SIZE:
      given = address ? &window.size : integer(window.size);
      break;
    case MPI_WIN_DISP_UNIT:
      given = address ? &window.displacement_unit : integer(window.displacement_unit);
      break;
    case MPI_WIN_CREATE_FLAVOR:
      given = address ? &window.flavor : integer(window.flavor);
      break;
    case MPI_WIN_MODEL:
      given = address ? &window.model : integer(window.model);
      break;
    default:
      *flag = 0;
      return Error(MPI_ERR_KEYVAL, "keyval " + std::to_string(keyval) + " is not one of a window");
  }
  std::memcpy(out, &given, sizeof given);
  return {};
}

Error GetOwn(const Attributes& attributes, AttributeOwner owner, int keyval, AttributeType as, void* out, int* flag) {
  Keyval* found;
  *flag = 0;
  WEFT_MPI_TRY(FindKeyval(keyval, owner, &found));
  void* value = nullptr;
  if (!attributes.GetAs(*found, as, &value)) return {};
  *flag = 1;
  std::memcpy(out, &value, sizeof value);
  return {};
}

Error CheckOut(const void* value, const int* flag) {
  WEFT_MPI_TRY(CheckNotNull(value, "attribute_val"));
  return CheckNotNull(flag, "flag");
}

Error SetOwn(Attributes& attributes, AttributeOwner owner, int object, int keyval, void* value, AttributeType type) {
  Keyval* found;
  WEFT_MPI_TRY(FindChangeable(keyval, owner, &found));
  return attributes.Set(object, *found, value, type);
}

Error DeleteOwn(Attributes& attributes, AttributeOwner owner, int object, int keyval) {
  Keyval* found;
  WEFT_MPI_TRY(FindChangeable(keyval, owner, &found));
  return attributes.Delete(object, *found);
}

template <typename Body>
int OnType(const char* name, MPI_Datatype handle, Body body) {
  return Anywhere(name, [&]() -> Error {
    Datatype* type;
    WEFT_MPI_TRY(FindAnyType(handle, &type));
    return body(*type);
  });
}

int GetOfComm(const char* name, MPI_Comm comm, int keyval, void* value, int* flag, AttributeType as) {
  return OnComm(name, comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckOut(value, flag));
    if (IsPredefined(keyval)) return GetPredefinedOfComm(c, keyval, as, value, flag);
    return GetOwn(c.attributes, AttributeOwner::kComm, keyval, as, value, flag);
  });
}

int GetOnType(const char* name, MPI_Datatype type, int keyval, void* value, int* flag, AttributeType as) {
  return OnType(name, type, [&](Datatype& t) -> Error {
    WEFT_MPI_TRY(CheckOut(value, flag));
    return GetOwn(t.attributes, AttributeOwner::kType, keyval, as, value, flag);
  });
}

int GetOnWin(const char* name, MPI_Win win, int keyval, void* value, int* flag, AttributeType as) {
  return OnWin(name, win, [&](Window& w) -> Error {
    WEFT_MPI_TRY(CheckOut(value, flag));
    if (IsPredefined(keyval)) return GetPredefinedOfWindow(w, keyval, as, value, flag);
    return GetOwn(w.attributes, AttributeOwner::kWin, keyval, as, value, flag);
  });
}

int SetOfComm(const char* name, MPI_Comm comm, int keyval, void* value, AttributeType type) {
  return OnComm(name, comm,
                [&](Comm& c) { return SetOwn(c.attributes, AttributeOwner::kComm, comm, keyval, value, type); });
}

int SetOnType(const char* name, MPI_Datatype datatype, int keyval, void* value, AttributeType type) {
  return OnType(name, datatype, [&](Datatype& t) {
    return SetOwn(t.attributes, AttributeOwner::kType, datatype, keyval, value, type);
  });
}

int SetOnWin(const char* name, MPI_Win win, int keyval, void* value, AttributeType type) {
  return OnWin(name, win,
               [&](Window& w) { return SetOwn(w.attributes, AttributeOwner::kWin, win, keyval, value, type); });
}

int DeleteOnComm(const char* name, MPI_Comm comm, int keyval) {
  return OnComm(name, comm, [&](Comm& c) { return DeleteOwn(c.attributes, AttributeOwner::kComm, comm, keyval); });
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;
using Owner = AttributeOwner;

WEFT_MPI_FUNCTION(Comm_create_keyval,
                  (MPI_Comm_copy_attr_function * copy, MPI_Comm_delete_attr_function* remove, int* comm_keyval,
                   void* extra_state),
                  CreateKeyval(name, Owner::kComm, copy, remove, comm_keyval, extra_state))

WEFT_MPI_FUNCTION(Keyval_create,
                  (MPI_Copy_function * copy, MPI_Delete_function* remove, int* keyval, void* extra_state),
                  CreateKeyval(name, Owner::kComm, copy, remove, keyval, extra_state))

WEFT_MPI_FUNCTION(Type_create_keyval,
                  (MPI_Type_copy_attr_function * copy, MPI_Type_delete_attr_function* remove, int* type_keyval,
                   void* extra_state),
                  CreateKeyval(name, Owner::kType, copy, remove, type_keyval, extra_state))

WEFT_MPI_FUNCTION(Win_create_keyval,
                  (MPI_Win_copy_attr_function * copy, MPI_Win_delete_attr_function* remove, int* win_keyval,
                   void* extra_state),
                  CreateKeyval(name, Owner::kWin, copy, remove, win_keyval, extra_state))

WEFT_MPI_FUNCTION(Comm_free_keyval, (int* comm_keyval), FreeKeyval(name, Owner::kComm, comm_keyval))

WEFT_MPI_FUNCTION(Keyval_free, (int* keyval), FreeKeyval(name, Owner::kComm, keyval))

WEFT_MPI_FUNCTION(Type_free_keyval, (int* type_keyval), FreeKeyval(name, Owner::kType, type_keyval))

WEFT_MPI_FUNCTION(Win_free_keyval, (int* win_keyval), FreeKeyval(name, Owner::kWin, win_keyval))

WEFT_MPI_FUNCTION(Comm_get_attr, (MPI_Comm comm, int comm_keyval, void* attribute_val, int* flag),
                  GetOfComm(name, comm, comm_keyval, attribute_val, flag, AttributeType::kPointer))

WEFT_MPI_FUNCTION(Attr_get, (MPI_Comm comm, int keyval, void* attribute_val, int* flag),
                  GetOfComm(name, comm, keyval, attribute_val, flag, AttributeType::kPointer))

WEFT_MPI_FUNCTION(Type_get_attr, (MPI_Datatype datatype, int type_keyval, void* attribute_val, int* flag),
                  GetOnType(name, datatype, type_keyval, attribute_val, flag, AttributeType::kPointer))

WEFT_MPI_FUNCTION(Win_get_attr, (MPI_Win win, int win_keyval, void* attribute_val, int* flag),
                  GetOnWin(name, win, win_keyval, attribute_val, flag, AttributeType::kPointer))

WEFT_MPI_FUNCTION(Comm_set_attr, (MPI_Comm comm, int comm_keyval, void* attribute_val),
                  SetOfComm(name, comm, comm_keyval, attribute_val, AttributeType::kPointer))

WEFT_MPI_FUNCTION(Attr_put, (MPI_Comm comm, int keyval, void* attribute_val),
                  SetOfComm(name, comm, keyval, attribute_val, AttributeType::kPointer))

WEFT_MPI_FUNCTION(Type_set_attr, (MPI_Datatype datatype, int type_keyval, void* attribute_val),
                  SetOnType(name, datatype, type_keyval, attribute_val, AttributeType::kPointer))

WEFT_MPI_FUNCTION(Win_set_attr, (MPI_Win win, int win_keyval, void* attribute_val),
                  SetOnWin(name, win, win_keyval, attribute_val, AttributeType::kPointer))

WEFT_MPI_FUNCTION(Comm_delete_attr, (MPI_Comm comm, int comm_keyval), DeleteOnComm(name, comm, comm_keyval))

WEFT_MPI_FUNCTION(Attr_delete, (MPI_Comm comm, int keyval), DeleteOnComm(name, comm, keyval))

WEFT_MPI_FUNCTION(Type_delete_attr, (MPI_Datatype datatype, int type_keyval), OnType(name, datatype, [&](Datatype& t) {
                    return DeleteOwn(t.attributes, Owner::kType, datatype, type_keyval);
                  }))

WEFT_MPI_FUNCTION(Win_delete_attr, (MPI_Win win, int win_keyval),
                  OnWin(name, win, [&](Window& w) { return DeleteOwn(w.attributes, Owner::kWin, win, win_keyval); }))

// --- what MPICH's Fortran and C++ libraries call ---

int MPII_Comm_get_attr(MPI_Comm comm, int keyval, void* value, int* flag, int type) {
  return GetOfComm("MPI_Comm_get_attr", comm, keyval, value, flag, static_cast<AttributeType>(type));
}
int MPII_Type_get_attr(MPI_Datatype datatype, int keyval, void* value, int* flag, int type) {
  return GetOnType("MPI_Type_get_attr", datatype, keyval, value, flag, static_cast<AttributeType>(type));
}
int MPII_Win_get_attr(MPI_Win win, int keyval, void* value, int* flag, int type) {
  return GetOnWin("MPI_Win_get_attr", win, keyval, value, flag, static_cast<AttributeType>(type));
}
int MPII_Comm_set_attr(MPI_Comm comm, int keyval, void* value, int type) {
  return SetOfComm("MPI_Comm_set_attr", comm, keyval, value, static_cast<AttributeType>(type));
}
int MPII_Type_set_attr(MPI_Datatype datatype, int keyval, void* value, int type) {
  return SetOnType("MPI_Type_set_attr", datatype, keyval, value, static_cast<AttributeType>(type));
}
int MPII_Win_set_attr(MPI_Win win, int keyval, void* value, int type) {
  return SetOnWin("MPI_Win_set_attr", win, keyval, value, static_cast<AttributeType>(type));
}

void MPII_Keyval_set_proxy(int handle, Keyval::CopyProxy* copy_proxy, Keyval::DeleteProxy* delete_proxy) {
  LockGuard lock;
  Keyval* keyval = Keyval::Find(handle);
  if (keyval == nullptr) return;
  keyval->copy_proxy = copy_proxy;
  keyval->delete_proxy = delete_proxy;
}
