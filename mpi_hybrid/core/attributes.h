#ifndef MPI_HYBRID_CORE_ATTRIBUTES_H_
#define MPI_HYBRID_CORE_ATTRIBUTES_H_

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/handle.h"
#include "mpi_hybrid/core/ref.h"

namespace weft::mpi {

enum class AttributeOwner : uint8_t { kComm, kType, kWin };

// How an attribute was stored and is asked for: C stores a pointer, Fortran 77 an INTEGER, Fortran 90 an
// INTEGER(KIND=MPI_ADDRESS_KIND) (MPI 4.0 section 19.3.7). The numbers are those that MPICH's Fortran library passes to
// MPII_*_set_attr and _get_attr.
enum class AttributeType : int { kPointer = 0, kAint = 1, kInt = 3 };

// MPI_Comm_create_keyval and its kin. The proxies call the user's functions in the language that they are written in; MPICH's
// Fortran and C++ libraries set theirs by MPII_Keyval_set_proxy.
struct Keyval : RefCounted<Keyval> {
  using CopyProxy = int(int (*user)(int, int, void*, void*, void*, int*), int object, int keyval, void* extra_state,
                        AttributeType type, void* value, void** new_value, int* flag);
  using DeleteProxy = int(int (*user)(int, int, void*, void*), int object, int keyval, AttributeType type, void* value,
                          void* extra_state);

  int handle = MPI_KEYVAL_INVALID;
  AttributeOwner owner = AttributeOwner::kComm;
  int (*copy)(int, int, void*, void*, void*, int*) = nullptr;  // null: not copied
  int (*remove)(int, int, void*, void*) = nullptr;             // null: nothing to do
  void* extra_state = nullptr;
  CopyProxy* copy_proxy = nullptr;  // null: C calling sequence
  DeleteProxy* delete_proxy = nullptr;
  bool freed = false;  // by the user; lives on, and its handle with it, while attributes have it

  // Null: unknown, or freed and in no attribute any more. The caller checks the owner. A freed keyval is found while an
  // attribute has it: the program deletes those by a copy of the handle (MPI 4.0 section 7.7.2, MPI_Comm_free_keyval).
  static Keyval* Find(int handle);

  ~Keyval();
};

// The user's reference is in the result's table entry; FreeKeyval takes it back, once: later calls do nothing.
Keyval& MakeKeyval(AttributeOwner owner, int (*copy)(int, int, void*, void*, void*, int*), int (*remove)(int, int, void*, void*),
                   void* extra_state);
void FreeKeyval(Keyval& keyval);

// The attributes of one object. Callbacks run in the order that MPI asks for (on free: last set first). A callback that
// returns an error makes the operation fail with that error code's class, MPI_ERR_OTHER if it has none; with the code
// itself if the program added it (MPI_Add_error_code).
class Attributes {
 public:
  Error Set(int object, Keyval& keyval, void* value, AttributeType type);
  // False: not set. `type` says how it was stored.
  bool Get(const Keyval& keyval, void** value, AttributeType* type) const;
  // The same as the language `as` sees it: C gets the address of what Fortran stored, Fortran the pointer of C as an integer.
  bool GetAs(const Keyval& keyval, AttributeType as, void** value) const;
  Error Delete(int object, Keyval& keyval);
  Error DeleteAll(int object);
  // Into the (empty) attributes of a duplicate.
  Error CopyTo(int object, Attributes* to) const;

 private:
  struct Entry {
    Ref<Keyval> keyval;
    void* value;
    AttributeType type;
  };
  Entry* FindEntry(const Keyval& keyval) const;
  void Erase(const Entry* entry);

  // In the order in which they were set. Each at an address of its own, which GetAs gives out.
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_ATTRIBUTES_H_
