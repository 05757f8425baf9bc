#ifndef MPI_HYBRID_DATATYPE_OP_H_
#define MPI_HYBRID_DATATYPE_OP_H_

#include <mpi.h>

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/ref.h"
#include "mpi_hybrid/datatype/datatype.h"

namespace weft::mpi {

// A reduction operation (MPI 4.0 section 6.9).
class Op : public RefCounted<Op> {
 public:
  enum class Language : uint8_t { kC, kFortran, kCxx };

  MPI_Op handle = MPI_OP_NULL;
  bool builtin = false;
  bool commutative = true;
  Language language = Language::kC;
  MPI_User_function* function = nullptr;      // of MPI_Op_create
  MPI_User_function_c* function_c = nullptr;  // of MPI_Op_create_c
  void (*cxx_proxy)(const void*, void*, int, MPI_Datatype, MPI_User_function*) = nullptr;  // MPII_Op_set_cxx

  // A predefined or user-defined operation. Null: `handle` is neither, or was freed.
  static Op* Find(MPI_Op handle);
  // Give makes the handle, which is a reference of the program. TakeBack makes the handle invalid; running operations
  // keep the object alive.
  static MPI_Op Give(Op& op);
  static void TakeBack(Op& op);

  const char* Name() const;  // "MPI_SUM" ...

  // Whether the operation is defined for the type. Predefined operations are defined for the types of MPI 4.0 section
  // 6.9.2, and MINLOC and MAXLOC for MPICH's pair types as well; derived types are refused. User-defined operations
  // accept any type. MPI_ERR_OP: the message names the operation and the type.
  Error Accepts(const Datatype& type) const;

  // inout[i] = in[i] op inout[i] for `count` elements. `in` and `inout` do not overlap. Does not release the library's
  // lock: a user's function must not call MPI communication functions.
  void Apply(const void* in, void* inout, MPI_Aint count, const Datatype& type) const;

  // Whether the predefined `op` is defined for a basic type (Datatype::OnlyBasic). MPI_REPLACE and MPI_NO_OP are
  // defined for all.
  static bool IsDefined(MPI_Op op, MPI_Datatype basic);
  // The one-sided form, also for MPI_REPLACE and MPI_NO_OP. Applies packed `in` (`count` elements of the basic type
  // `basic`; pairs without their padding) to memory at `inout`, in which elements are one extent apart. Any alignment
  // is allowed. The operation must be defined for the type.
  static void ApplyBasic(MPI_Op op, MPI_Datatype basic, const void* in, void* inout, MPI_Aint count);
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DATATYPE_OP_H_
