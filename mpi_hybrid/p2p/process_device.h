#ifndef MPI_HYBRID_P2P_PROCESS_DEVICE_H_
#define MPI_HYBRID_P2P_PROCESS_DEVICE_H_

#include <chrono>

#include "mpi_hybrid/p2p/device/device.h"
#include "mpi_hybrid/p2p/engine/engine.h"

namespace weft::mpi {

// The device and the engine of this process, between StartDevice and StopDevice, which alone set them; else null.
inline Device* g_process_device = nullptr;
inline Engine* g_process_engine = nullptr;
inline Device* ProcessDevice() { return g_process_device; }
inline Engine* ProcessEngine() { return g_process_engine; }

// Called when it is known which ranks of the host joined its segment (host::SettleHost). From then on, a rank polls if
// there are processors for itself and for all other ranks that may run on them, even if the host has many other ranks.
void SettleDevice();

// How long a wait polls before it sleeps. 0 if ranks share processors. WEFT_MPI_SPIN_US overrides it.
std::chrono::microseconds SpinTime();

// Whether a waiting rank yields its processor rather than sleeps: some ranks exchange messages through memory, and
// there are few ranks per processor. The limit is 64, or 8 if the ranks are in several sessions and the kernel does not
// yield to a process of another session, because each rank would then keep the processor in vain.
bool HandsProcessorOn();

// For a wait that has taken some microseconds: whether to yield although there is a processor for each rank, because
// another waiting rank is on this processor.
bool SharesProcessor();

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_PROCESS_DEVICE_H_
