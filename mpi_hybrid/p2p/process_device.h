#ifndef MPI_HYBRID_P2P_PROCESS_DEVICE_H_
#define MPI_HYBRID_P2P_PROCESS_DEVICE_H_

#include <chrono>

#include "mpi_hybrid/p2p/device/device.h"
#include "mpi_hybrid/p2p/engine/engine.h"

namespace weft::mpi {

// This process's, between StartDevice and StopDevice; null otherwise. Set by these alone.
inline Device* g_process_device = nullptr;
inline Engine* g_process_engine = nullptr;
inline Device* ProcessDevice() { return g_process_device; }
inline Engine* ProcessEngine() { return g_process_engine; }

// Once it is known who of the host joined its segment (shm::SettleNode): from now on a rank polls that has processors for itself and for all
// that may run there, though others of the host be many.
void SettleDevice();

// How long a wait polls before it sleeps: 0 when ranks share processors (WEFT_MPI_SPIN_US overrides).
std::chrono::microseconds SpinTime();

// Whether messages of some ranks come through memory, and ranks are so few for each processor that one that waits hands it
// on rather than sleeps: 64, or 8 where the kernel hands it to none of another session and they are in several; each would keep it in vain.
bool HandsProcessorOn();

// For a wait that has taken some microseconds: whether to hand the processor on although there is one for each rank, since another that
// waits has this one.
bool SharesProcessor();

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_PROCESS_DEVICE_H_
