#ifndef MPI_HYBRID_CORE_PAUSE_H_
#define MPI_HYBRID_CORE_PAUSE_H_

namespace weft::mpi {

// A pause between two polls of a thread that spins.
inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // takes about as long as x86's pause; yield takes no time on most arm64 processors
#endif
}

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_PAUSE_H_
