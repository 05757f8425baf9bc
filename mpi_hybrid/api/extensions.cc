#include <string>

#include "mpi_hybrid/api/entry.h"

// MPICH's extensions that are answered here. MPIX_Comm_* (survive.cc) and the rest are in other files.
using namespace weft::mpi;

int PMPIX_GPU_query_support(int gpu_type, int* is_supported) {
  LockGuard lock;
  if (Error error = CheckNotNull(is_supported, "is_supported"); !error.ok())
    return ReportAnywhere("MPIX_GPU_query_support", error);
  *is_supported = 0;
  if (gpu_type >= MPIX_GPU_SUPPORT_CUDA && gpu_type <= MPIX_GPU_SUPPORT_HIP) return MPI_SUCCESS;
  return ReportAnywhere("MPIX_GPU_query_support",
                        Error(MPI_ERR_ARG, "gpu_type " + std::to_string(gpu_type) + " is not a kind of GPU"));
}
WEFT_MPIX_ALIAS(GPU_query_support)

int PMPIX_Query_cuda_support(void) { return 0; }
WEFT_MPIX_ALIAS(Query_cuda_support)

int PMPIX_Query_hip_support(void) { return 0; }
WEFT_MPIX_ALIAS(Query_hip_support)

int PMPIX_Query_ze_support(void) { return 0; }
WEFT_MPIX_ALIAS(Query_ze_support)

// --- QMPI, MPICH's attempt at several profiling tools at once, which MPICH itself builds without: a tool that registers is told
// so ---

extern "C" {
struct QMPI_Context {
  void* storage_stack;
};

int QMPI_Register_tool_name(const char*, void (*)(int tool_id)) { return MPI_ERR_UNSUPPORTED_OPERATION; }
int QMPI_Register_tool_storage(int, void*) { return MPI_ERR_UNSUPPORTED_OPERATION; }
int QMPI_Register_function(int, int, void (*)(void)) { return MPI_ERR_UNSUPPORTED_OPERATION; }
int QMPI_Get_function(int, int, void (**function)(void), int* next_tool_id) {
  if (function != nullptr) *function = nullptr;
  if (next_tool_id != nullptr) *next_tool_id = 0;
  return MPI_ERR_UNSUPPORTED_OPERATION;
}
int QMPI_Get_tool_storage(QMPI_Context, int, void** storage) {
  if (storage != nullptr) *storage = nullptr;
  return MPI_ERR_UNSUPPORTED_OPERATION;
}
int QMPI_Get_calling_address(QMPI_Context, void** address) {
  if (address != nullptr) *address = nullptr;
  return MPI_ERR_UNSUPPORTED_OPERATION;
}
}
