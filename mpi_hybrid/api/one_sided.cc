#include "mpi_hybrid/api/bindings.h"
#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/message_arguments.h"
#include "mpi_hybrid/core/counters.h"
#include "mpi_hybrid/rma/window.h"

// One-sided communication (MPI 4.0 section 12.3).
namespace weft::mpi {
namespace {

// The sides of a call as the program gives them.
struct OriginArguments {
  const void* buffer;
  MPI_Count count;
  MPI_Datatype datatype;
};
struct TargetArguments {
  int rank;
  MPI_Aint displacement;
  MPI_Count count;
  MPI_Datatype datatype;
};

Error FindTargetType(MPI_Count count, MPI_Datatype datatype, const Datatype** type) {
  WEFT_MPI_TRY(CheckCount(count));
  WEFT_MPI_TRY(FindCommitted(datatype, type));
  return CheckExtent(count, **type);
}

inline Error FindOrigin(const OriginArguments& arguments, Origin* origin) {
  *origin = {.buffer = arguments.buffer, .count = arguments.count, .type = Datatype::Find(arguments.datatype)};
  if (IsPlainData(arguments.buffer, arguments.count, origin->type)) [[likely]] return {};
  return FindData(arguments.buffer, arguments.count, arguments.datatype, &origin->type);
}

inline Error FindTarget(const TargetArguments& arguments, Target* target) {
  *target = {.rank = arguments.rank, .displacement = arguments.displacement, .count = arguments.count, .type = Datatype::Find(arguments.datatype)};
  if (IsPlainLayout(arguments.count, target->type)) [[likely]] return {};
  return FindTargetType(arguments.count, arguments.datatype, &target->type);
}

// `call(origin, target, request)` with checked arguments. `handle`: null for calls without request. `counter`: of those that began.
template <typename Call>
int Communicate(const char* name, uint64_t Counters::*counter, MPI_Win win, const OriginArguments& from, const TargetArguments& to, MPI_Request* handle,
                bool with_request, Call call) {
  return OnWin(name, win, [&](Window& w) -> Error {
    if (with_request) WEFT_MPI_TRY(CheckNotNull(handle, "request"));
    Origin origin;
    Target target;
    WEFT_MPI_TRY(FindOrigin(from, &origin));
    WEFT_MPI_TRY(FindTarget(to, &target));
    Request* request = nullptr;
    WEFT_MPI_TRY(call(w, origin, target, with_request ? &request : nullptr));
    ++(g_counters.*counter);
    if (with_request) *handle = Request::Give(request);
    return {};
  });
}

int Put(const char* name, MPI_Win win, const OriginArguments& from, const TargetArguments& to, MPI_Request* handle,
        bool with_request) {
  return Communicate(
      name, &Counters::puts, win, from, to, handle, with_request,
      [](Window& w, const Origin& origin, const Target& target, Request** request) { return w.Put(origin, target, request); });
}

int Get(const char* name, MPI_Win win, const OriginArguments& from, const TargetArguments& to, MPI_Request* handle,
        bool with_request) {
  return Communicate(
      name, &Counters::gets, win, from, to, handle, with_request,
      [](Window& w, const Origin& origin, const Target& target, Request** request) { return w.Get(origin, target, request); });
}

int Accumulate(const char* name, MPI_Win win, const OriginArguments& from, const TargetArguments& to, MPI_Op op,
               MPI_Request* handle, bool with_request) {
  return Communicate(name, &Counters::accumulates, win, from, to, handle, with_request,
                     [op](Window& w, const Origin& origin, const Target& target, Request** request) -> Error {
                       const Op* operation;
                       WEFT_MPI_TRY(FindOp(op, &operation));
                       return w.Accumulate(origin, target, *operation, request);
                     });
}

// The origin does not matter for MPI_NO_OP: it may be null, its type anything.
int GetAccumulate(const char* name, MPI_Win win, OriginArguments from, const OriginArguments& into, const TargetArguments& to,
                  MPI_Op op, MPI_Request* handle, bool with_request) {
  if (op == MPI_NO_OP) from = {nullptr, 0, MPI_BYTE};
  return Communicate(name, &Counters::get_accumulates, win, from, to, handle, with_request,
                     [&](Window& w, const Origin& origin, const Target& target, Request** request) -> Error {
                       const Op* operation;
                       Origin result;
                       WEFT_MPI_TRY(FindOp(op, &operation));
                       WEFT_MPI_TRY(FindOrigin(into, &result));
                       return w.GetAccumulate(origin, result, target, *operation, request);
                     });
}

// Of the calls that work on one element.
Error FindElement(MPI_Datatype datatype, const Datatype** type) {
  WEFT_MPI_TRY(FindCommitted(datatype, type));
  if ((*type)->builtin) return {};
  return Error(MPI_ERR_TYPE, "datatype is not a predefined one");
}

}  // namespace
}  // namespace weft::mpi

namespace mpi = weft::mpi;
using mpi::Error;
using mpi::OnWin;
using mpi::Window;

WEFT_MPI_BOTH(Put,
              (const void* origin_addr, Count origin_count, MPI_Datatype origin_datatype, int target_rank,
               MPI_Aint target_disp, Count target_count, MPI_Datatype target_datatype, MPI_Win win),
              Put(name, win, {origin_addr, origin_count, origin_datatype},
                  {target_rank, target_disp, target_count, target_datatype}, nullptr, false))

WEFT_MPI_BOTH(Rput,
              (const void* origin_addr, Count origin_count, MPI_Datatype origin_datatype, int target_rank,
               MPI_Aint target_disp, Count target_count, MPI_Datatype target_datatype, MPI_Win win,
               MPI_Request* request),
              Put(name, win, {origin_addr, origin_count, origin_datatype},
                  {target_rank, target_disp, target_count, target_datatype}, request, true))

WEFT_MPI_BOTH(Get,
              (void* origin_addr, Count origin_count, MPI_Datatype origin_datatype, int target_rank,
               MPI_Aint target_disp, Count target_count, MPI_Datatype target_datatype, MPI_Win win),
              Get(name, win, {origin_addr, origin_count, origin_datatype},
                  {target_rank, target_disp, target_count, target_datatype}, nullptr, false))

WEFT_MPI_BOTH(Rget,
              (void* origin_addr, Count origin_count, MPI_Datatype origin_datatype, int target_rank,
               MPI_Aint target_disp, Count target_count, MPI_Datatype target_datatype, MPI_Win win,
               MPI_Request* request),
              Get(name, win, {origin_addr, origin_count, origin_datatype},
                  {target_rank, target_disp, target_count, target_datatype}, request, true))

WEFT_MPI_BOTH(Accumulate,
              (const void* origin_addr, Count origin_count, MPI_Datatype origin_datatype, int target_rank,
               MPI_Aint target_disp, Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win),
              Accumulate(name, win, {origin_addr, origin_count, origin_datatype},
                         {target_rank, target_disp, target_count, target_datatype}, op, nullptr, false))

WEFT_MPI_BOTH(Raccumulate,
              (const void* origin_addr, Count origin_count, MPI_Datatype origin_datatype, int target_rank,
               MPI_Aint target_disp, Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,
               MPI_Request* request),
              Accumulate(name, win, {origin_addr, origin_count, origin_datatype},
                         {target_rank, target_disp, target_count, target_datatype}, op, request, true))

WEFT_MPI_BOTH(Get_accumulate,
              (const void* origin_addr, Count origin_count, MPI_Datatype origin_datatype, void* result_addr,
               Count result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp,
               Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win),
              GetAccumulate(name, win, {origin_addr, origin_count, origin_datatype},
                            {result_addr, result_count, result_datatype},
                            {target_rank, target_disp, target_count, target_datatype}, op, nullptr, false))

WEFT_MPI_BOTH(Rget_accumulate,
              (const void* origin_addr, Count origin_count, MPI_Datatype origin_datatype, void* result_addr,
               Count result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp,
               Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request* request),
              GetAccumulate(name, win, {origin_addr, origin_count, origin_datatype},
                            {result_addr, result_count, result_datatype},
                            {target_rank, target_disp, target_count, target_datatype}, op, request, true))

int PMPI_Fetch_and_op(const void* origin_addr, void* result_addr, MPI_Datatype datatype, int target_rank, MPI_Aint target_disp,
                      MPI_Op op, MPI_Win win) {
  return OnWin("MPI_Fetch_and_op", win, [&](Window& w) -> Error {
    const mpi::Datatype* type;
    const mpi::Op* operation;
    WEFT_MPI_TRY(mpi::FindElement(datatype, &type));
    WEFT_MPI_TRY(mpi::FindOp(op, &operation));
    if (op != MPI_NO_OP) WEFT_MPI_TRY(mpi::CheckBuffer(origin_addr, 1, *type));
    WEFT_MPI_TRY(mpi::CheckBuffer(result_addr, 1, *type));
    WEFT_MPI_TRY(w.FetchAndOp(origin_addr, result_addr, *type, {target_rank, target_disp, 1, type}, *operation));
    ++mpi::g_counters.fetch_and_ops;
    return {};
  });
}
WEFT_MPI_ALIAS(Fetch_and_op)

int PMPI_Compare_and_swap(const void* origin_addr, const void* compare_addr, void* result_addr, MPI_Datatype datatype,
                          int target_rank, MPI_Aint target_disp, MPI_Win win) {
  return OnWin("MPI_Compare_and_swap", win, [&](Window& w) -> Error {
    const mpi::Datatype* type;
    WEFT_MPI_TRY(mpi::FindElement(datatype, &type));
    for (const void* buffer : {origin_addr, compare_addr, static_cast<const void*>(result_addr)}) {
      WEFT_MPI_TRY(mpi::CheckBuffer(buffer, 1, *type));
    }
    WEFT_MPI_TRY(w.CompareAndSwap(origin_addr, compare_addr, result_addr, *type, {target_rank, target_disp, 1, type}));
    ++mpi::g_counters.compare_and_swaps;
    return {};
  });
}
WEFT_MPI_ALIAS(Compare_and_swap)
