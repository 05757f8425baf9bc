#include "measure.h"

namespace mpi_bench {

// Half of a round trip.
void PingPong() {
  const std::vector<int> sizes = g_quick ? std::vector<int>{8, 1024, 4096, 65536, 1048576}
                                         : std::vector<int>{8, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304};
  for (const int size : sizes) {
    std::vector<char> buffer(size);
    const double us = Measure(15 + size / 2000.0, [&] {
      if (g_rank == 0) {
        MPI_Send(buffer.data(), size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(buffer.data(), size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else {
        MPI_Recv(buffer.data(), size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buffer.data(), size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
      }
    });
    Print("ping_pong", size, us / 2);
  }
}

// Windows of 32 messages one way, answered by an empty one: bytes and, for 8 bytes, messages per second.
void Stream() {
  constexpr int kWindow = 32;
  const std::vector<int> sizes = g_quick ? std::vector<int>{8, 65536, 1048576} : std::vector<int>{8, 1024, 8192, 65536, 262144, 1048576};
  for (const int size : sizes) {
    std::vector<char> buffer(static_cast<size_t>(size) * kWindow);
    std::vector<MPI_Request> requests(kWindow);
    const double us = Measure(60 + kWindow * size / 2000.0, [&] {
      for (int i = 0; i < kWindow; i++) {
        char* place = buffer.data() + static_cast<size_t>(i) * size;
        if (g_rank == 0) {
          MPI_Isend(place, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[i]);
        } else {
          MPI_Irecv(place, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[i]);
        }
      }
      MPI_Waitall(kWindow, requests.data(), MPI_STATUSES_IGNORE);
      if (g_rank == 0) {
        MPI_Recv(nullptr, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else {
        MPI_Send(nullptr, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
      }
    });
    if (size == 8) {
      Print("message_rate", size, kWindow / us * 1e6);
    } else {
      Print("bandwidth", size, static_cast<double>(size) * kWindow / us * 1e6);
    }
  }
}

}  // namespace mpi_bench
