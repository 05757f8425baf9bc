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

  // A predefined or made operation; null when `handle` is neither or was freed.
  static Op* Find(MPI_Op handle);
  // Makes the handle, a reference of the program. TakeBack makes it void; operations under way keep the object.
  static MPI_Op Give(Op& op);
  static void TakeBack(Op& op);

  const char* Name() const;  // "MPI_SUM" ...

  // Whether it is defined for the type: for predefined operations the types of MPI 4.0 section 6.9.2 (and what MPICH adds: MINLOC
  // and MAXLOC on pair types; derived types are refused); for the user's any. MPI_ERR_OP names both.
  Error Accepts(const Datatype& type) const;

  // inout[i] = in[i] op inout[i] for `count` elements. `in` and `inout` do not overlap. Lets go of nothing: a user's function may
  // not call MPI's communication.
  void Apply(const void* in, void* inout, MPI_Aint count, const Datatype& type) const;

  // Whether the predefined `op` is defined for a basic type (Datatype::OnlyBasic); MPI_REPLACE and MPI_NO_OP are for all.
  static bool IsDefined(MPI_Op op, MPI_Datatype basic);
  // One-sided form, also for MPI_REPLACE and MPI_NO_OP: applies packed `in` (basic type `basic`, `count` elements; pairs without
  // their padding) to memory at `inout` in which elements lie one extent apart. Any alignment. The operation is defined for the
  // type.
  static void ApplyBasic(MPI_Op op, MPI_Datatype basic, const void* in, void* inout, MPI_Aint count);
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DATATYPE_OP_H_
