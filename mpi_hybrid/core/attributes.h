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

// The language in which an attribute was stored, or is read. C stores a pointer, Fortran 77 an INTEGER, Fortran 90 an
// INTEGER(KIND=MPI_ADDRESS_KIND) (MPI 4.0 section 19.3.7). The values are those that MPICH's Fortran library passes to
// MPII_*_set_attr and MPII_*_get_attr.
enum class AttributeType : int { kPointer = 0, kAint = 1, kInt = 3 };

// A keyval of MPI_Comm_create_keyval, MPI_Type_create_keyval or MPI_Win_create_keyval. A proxy calls the user's
// function with the calling sequence of its language. MPICH's Fortran and C++ libraries set their proxies with
// MPII_Keyval_set_proxy.
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
  bool freed = false;  // freed by the user; the keyval and its handle stay valid while an attribute uses them

  // Null: unknown, or freed and no longer used by any attribute. The caller checks the owner. A freed keyval is still
  // found while an attribute uses it, so that the program can delete that attribute by a copy of the handle (MPI 4.0
  // section 7.7.2, MPI_Comm_free_keyval).
  static Keyval* Find(int handle);

  ~Keyval();
};

// The table entry of the result holds the user's reference. FreeKeyval releases that reference; further calls have no
// effect.
Keyval& MakeKeyval(AttributeOwner owner, int (*copy)(int, int, void*, void*, void*, int*), int (*remove)(int, int, void*, void*),
                   void* extra_state);
void FreeKeyval(Keyval& keyval);

// The attributes of one object. Callbacks run in the order that MPI requires (on free: last set, first deleted). If a
// callback returns an error, the operation fails with the class of that error code, or with MPI_ERR_OTHER if the code
// has none. If the program added the code itself (MPI_Add_error_code), the operation fails with that code.
class Attributes {
 public:
  Error Set(int object, Keyval& keyval, void* value, AttributeType type);
  // False: not set. `type` tells how it was stored.
  bool Get(const Keyval& keyval, void** value, AttributeType* type) const;
  // Like Get, but converted for the language `as`: C gets the address of a value that Fortran stored; Fortran gets a
  // pointer that C stored, as an integer.
  bool GetAs(const Keyval& keyval, AttributeType as, void** value) const;
  Error Delete(int object, Keyval& keyval);
  Error DeleteAll(int object);
  // Copies into `to`, the attributes of a duplicate, which must be empty.
  Error CopyTo(int object, Attributes* to) const;

 private:
  struct Entry {
    Ref<Keyval> keyval;
    void* value;
    AttributeType type;
  };
  Entry* FindEntry(const Keyval& keyval) const;
  void Erase(const Entry* entry);

  // In the order in which they were set. Each entry has an address of its own, because GetAs returns addresses of
  // entries.
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_ATTRIBUTES_H_
