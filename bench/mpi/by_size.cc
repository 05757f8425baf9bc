#include "measure.h"

// Figures 4.2 and 4.5 of M. Tsai's thesis "Hybrid Design of MPI over SCTP" (UBC 2007), for bench/multirail.
namespace mpi_bench {
namespace {

// Calls `once()` for about a second (a fifth when quick), as often as rank 0 guesses by the second call; seconds per
// call, at rank 0.
template <typename Once>
double SecondsPerCall(Once once) {
  once();  // connects
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  once();
  int times = static_cast<int>(std::clamp((g_quick ? 0.2 : 1.0) / (MPI_Wtime() - start), 3.0, 20000.0));
  MPI_Bcast(&times, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  start = MPI_Wtime();
  for (int i = 0; i < times; i++) once();
  return (MPI_Wtime() - start) / times;
}

// A fence of a library whose windows are messages: each learns how many operations are for it, then they are done. What
// is in the window's memory is the target's to send and to receive; sizes and places are known to both (MPICH sends
// them in front of each operation).
class EmulatedWindow {
 public:
  explicit EmulatedWindow(std::vector<char>& memory) : memory_(memory) {}

  void PutAndFence(const char* from, int size) {
    if (g_rank == 0) {
      Expected({0, 1});
      MPI_Send(from, size, MPI_BYTE, 1, kPut, MPI_COMM_WORLD);
    } else if (Expected({0, 0}) > 0) {
      MPI_Recv(memory_.data(), size, MPI_BYTE, 0, kPut, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  void GetAndFence(char* into, int size) {
    if (g_rank == 0) {
      MPI_Request answer;
      MPI_Irecv(into, size, MPI_BYTE, 1, kAnswer, MPI_COMM_WORLD, &answer);
      Expected({0, 1});
      MPI_Send(&size, 1, MPI_INT, 1, kAsk, MPI_COMM_WORLD);
      MPI_Wait(&answer, MPI_STATUS_IGNORE);
    } else if (Expected({0, 0}) > 0) {
      int asked = 0;
      MPI_Recv(&asked, 1, MPI_INT, 0, kAsk, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(memory_.data(), asked, MPI_BYTE, 0, kAnswer, MPI_COMM_WORLD);
    }
  }

 private:
  enum Tag { kPut, kAsk, kAnswer };
  // `mine`: operations of this rank, by target. How many there are for it.
  static int Expected(const int (&mine)[2]) {
    int expected = 0;
    MPI_Reduce_scatter_block(mine, &expected, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return expected;
  }

  std::vector<char>& memory_;
};

void PrintMicroseconds(const char* name, int size, double seconds) { Print(name, size, seconds * 1e6); }

}  // namespace

// As osu_bw: windows of 64 messages one way, each answered by a short one; bytes per second.
void BandwidthBySize() {
  constexpr int kWindow = 64;
  std::vector<MPI_Request> requests(kWindow);
  for (const int size : g_quick ? std::vector<int>{1024, 65536, 1048576}
                                : std::vector<int>{64, 256, 1024, 2048, 4096, 16384, 65536, 262144, 1048576}) {
    std::vector<char> buffer(size);
    const double seconds = SecondsPerCall([&] {
      char done = 0;
      for (MPI_Request& request : requests) {
        if (g_rank == 0) {
          MPI_Isend(buffer.data(), size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
        } else {
          MPI_Irecv(buffer.data(), size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
        }
      }
      MPI_Waitall(kWindow, requests.data(), MPI_STATUSES_IGNORE);
      if (g_rank == 0) {
        MPI_Recv(&done, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else {
        MPI_Send(&done, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
      }
    });
    Print("bandwidth", size, static_cast<double>(size) * kWindow / seconds);
  }
}

// A Put or a Get of rank 0 and a fence of both, as they are and by messages alone.
void FencesBySize() {
  for (const int size : g_quick ? std::vector<int>{8, 4096, 1048576}
                                : std::vector<int>{2, 64, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304}) {
    char* memory = nullptr;
    MPI_Win win;
    MPI_Win_allocate(size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    std::fill(memory, memory + size, 0);
    std::vector<char> buffer(size), plain(size);
    MPI_Win_fence(0, win);
    PrintMicroseconds("put_fence", size, SecondsPerCall([&] {
                        if (g_rank == 0) MPI_Put(buffer.data(), size, MPI_BYTE, 1, 0, size, MPI_BYTE, win);
                        MPI_Win_fence(0, win);
                      }));
    PrintMicroseconds("get_fence", size, SecondsPerCall([&] {
                        if (g_rank == 0) MPI_Get(buffer.data(), size, MPI_BYTE, 1, 0, size, MPI_BYTE, win);
                        MPI_Win_fence(0, win);
                      }));
    MPI_Win_free(&win);
    EmulatedWindow emulated(plain);
    PrintMicroseconds("put_fence_emulated", size, SecondsPerCall([&] { emulated.PutAndFence(buffer.data(), size); }));
    PrintMicroseconds("get_fence_emulated", size, SecondsPerCall([&] { emulated.GetAndFence(buffer.data(), size); }));
  }
}

}  // namespace mpi_bench
