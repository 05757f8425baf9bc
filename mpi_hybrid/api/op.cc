#include <string>

#include "mpi_hybrid/api/bindings.h"
#include "mpi_hybrid/api/entry.h"

// Reduction operations (MPI 4.0 sections 6.9.5 to 6.9.7).
namespace weft::mpi {
namespace {

Error CreateOp(Ref<Op> op, int commute, MPI_Op* made) {
  WEFT_MPI_TRY(CheckNotNull(made, "op"));
  if (op->function == nullptr && op->function_c == nullptr) return Error(MPI_ERR_ARG, "user_fn is a null pointer");
  op->commutative = commute != 0;
  *made = Op::Give(*op);
  return {};
}

Error FreeOp(MPI_Op* handle) {
  const Op* op;
  WEFT_MPI_TRY(CheckNotNull(handle, "op"));
  WEFT_MPI_TRY(FindOp(*handle, &op));
  if (op->builtin) return Error(MPI_ERR_OP, "the predefined operation " + std::string(op->Name()) + " cannot be freed");
  Op::TakeBack(*Op::Find(*handle));
  *handle = MPI_OP_NULL;
  return {};
}

Error ReduceLocal(const void* in, void* inout, MPI_Count count, MPI_Datatype type_handle, MPI_Op op_handle) {
  const Datatype* type;
  const Op* op;
  WEFT_MPI_TRY(CheckCount(count));
  WEFT_MPI_TRY(FindCommitted(type_handle, &type));
  WEFT_MPI_TRY(FindOp(op_handle, &op));
  WEFT_MPI_TRY(op->Accepts(*type));
  if (in == MPI_IN_PLACE || inout == MPI_IN_PLACE)
    return Error(MPI_ERR_BUFFER, "a buffer is MPI_IN_PLACE, which MPI_Reduce_local does not take");
  WEFT_MPI_TRY(CheckBuffer(in, count, *type));
  WEFT_MPI_TRY(CheckBuffer(inout, count, *type));
  if (in == inout && count > 0 && type->size > 0) return Error(MPI_ERR_BUFFER, "inbuf and inoutbuf are the same memory");
  op->Apply(in, inout, count, *type);
  return {};
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

int PMPI_Op_create(MPI_User_function* user_fn, int commute, MPI_Op* op) {
  return Anywhere("MPI_Op_create", [&] {
    auto made = MakeRef<Op>();
    made->function = user_fn;
    return CreateOp(std::move(made), commute, op);
  });
}
WEFT_MPI_ALIAS(Op_create)
int PMPI_Op_create_c(MPI_User_function_c* user_fn, int commute, MPI_Op* op) {
  return Anywhere("MPI_Op_create_c", [&] {
    auto made = MakeRef<Op>();
    made->function_c = user_fn;
    return CreateOp(std::move(made), commute, op);
  });
}
WEFT_MPI_ALIAS(Op_create_c)
int PMPI_Op_free(MPI_Op* op) {
  return Anywhere("MPI_Op_free", [&] { return FreeOp(op); });
}
WEFT_MPI_ALIAS(Op_free)
int PMPI_Op_commutative(MPI_Op op, int* commute) {
  return Anywhere("MPI_Op_commutative", [&]() -> Error {
    const Op* found;
    WEFT_MPI_TRY(FindOp(op, &found));
    WEFT_MPI_TRY(CheckNotNull(commute, "commute"));
    *commute = found->commutative;
    return {};
  });
}
WEFT_MPI_ALIAS(Op_commutative)

WEFT_MPI_BOTH(Reduce_local, (const void* inbuf, void* inoutbuf, Count count, MPI_Datatype datatype, MPI_Op op),
              Anywhere(name, [&] { return ReduceLocal(inbuf, inoutbuf, count, datatype, op); }))
