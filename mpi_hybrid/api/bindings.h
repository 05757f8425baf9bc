#ifndef MPI_HYBRID_API_BINDINGS_H_
#define MPI_HYBRID_API_BINDINGS_H_

#include <mpi.h>

#include "mpi_hybrid/api/entry.h"

// A function of mpi.h whose value is one expression. In the expression, `name` is the function's name. Also makes the
// weak alias (entry.h):
//
//   WEFT_MPI_FUNCTION(Win_flush, (int rank, MPI_Win win),
//                     OnWin(name, win, [&](Window& w) { return w.Flush(rank); }))
#define WEFT_MPI_FUNCTION(function, parameters, ...)  \
  namespace weft::mpi::one_binding {                  \
  WEFT_MPI_BINDING(function, parameters, __VA_ARGS__) \
  }                                                   \
  WEFT_MPI_ALIAS(function)

// Functions that mpi.h declares twice, PMPI_Name with int for counts and PMPI_Name_c with MPI_Count (MPI 4.0 section
// 2.5.8), and which do the same with their arguments. `parameters`, in parentheses, use Count for both, and MPI_Count
// where the first binding has an MPI_Aint (the same type). The last argument is the value: an expression in which
// `name` is the function's name.
//
//   WEFT_MPI_BOTH(Mrecv, (void* buf, Count count, MPI_Datatype datatype, MPI_Message* message, MPI_Status* status),
//                 MatchedReceive(name, buf, count, datatype, message, status))
#define WEFT_MPI_BOTH(function, parameters, ...)          \
  namespace weft::mpi::int_binding {                      \
  WEFT_MPI_BINDING(function, parameters, __VA_ARGS__)     \
  }                                                       \
  namespace weft::mpi::large_binding {                    \
  WEFT_MPI_BINDING(function##_c, parameters, __VA_ARGS__) \
  }                                                       \
  WEFT_MPI_ALIAS(function)                                \
  WEFT_MPI_ALIAS(function##_c)
// The function has C linkage. Therefore it is the one that mpi.h declares, although it is in a namespace.
#define WEFT_MPI_BINDING(function, parameters, ...)                   \
  extern "C" int PMPI_##function parameters {                         \
    [[maybe_unused]] static constexpr char name[] = "MPI_" #function; \
    return __VA_ARGS__;                                               \
  }

namespace weft::mpi::int_binding {
using Count = int;
}
namespace weft::mpi::large_binding {
using Count = MPI_Count;
}

#endif  // MPI_HYBRID_API_BINDINGS_H_
