#include "measure.h"

namespace mpi_bench {
namespace {

constexpr int kSizes = 6;
constexpr int kSize[kSizes] = {64, 1024, 4096, 16384, 65536, 262144};
constexpr int kLargest = 262144;

struct Buffers {
  std::vector<char> sent[kSizes], received[kSizes], put[kSizes], got[kSizes];
  Buffers() {
    for (int k = 0; k < kSizes; k++) {
      for (auto* all : {sent, received, put, got}) all[k].resize(kSize[k]);
    }
  }
};

// Point-to-point in both directions; half of it awaited one by one, then what `middle` does, then the rest.
template <typename Start, typename Middle>
void Round(Buffers& buffers, Start start, Middle middle) {
  const int partner = 1 - g_rank;
  MPI_Request requests[2 * kSizes];
  for (int k = 0; k < kSizes; k++) MPI_Irecv(buffers.received[k].data(), kSize[k], MPI_BYTE, partner, k, MPI_COMM_WORLD, &requests[k]);
  for (int k = kSizes - 1; k >= 0; k--) {
    MPI_Isend(buffers.sent[k].data(), kSize[k], MPI_BYTE, partner, k, MPI_COMM_WORLD, &requests[kSizes + k]);
  }
  start();
  for (int i = 0; i < kSizes; i++) {
    int index;
    MPI_Waitany(2 * kSizes, requests, &index, MPI_STATUS_IGNORE);
  }
  middle();
  MPI_Waitall(2 * kSizes, requests, MPI_STATUSES_IGNORE);
}

// Puts and Gets beside the messages, completed by a fence in the middle.
double OneSided(Buffers& buffers) {
  const int partner = 1 - g_rank;
  char* memory;
  MPI_Win win;
  MPI_Win_allocate(2 * kLargest, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  std::fill(memory, memory + 2 * kLargest, 0);
  MPI_Win_fence(0, win);
  const double us = Measure(1500, [&] {
    Round(
        buffers,
        [&] {
          for (int k = 0; k < kSizes; k++) {
            MPI_Put(buffers.put[k].data(), kSize[k], MPI_BYTE, partner, 0, kSize[k], MPI_BYTE, win);
            MPI_Get(buffers.got[k].data(), kSize[k], MPI_BYTE, partner, kLargest, kSize[k], MPI_BYTE, win);
          }
        },
        [&] { MPI_Win_fence(0, win); });
  });
  MPI_Win_free(&win);
  return us;
}

// The same by messages alone, as a library without RDMA does it: a Put is a message to the target's memory; a Get is a request that the
// target finds in its fence and answers; the fence is a barrier once all have been answered.
double Emulated(Buffers& buffers) {
  constexpr int kPutTag = 100, kAskTag = 200, kAnswerTag = 300;
  const int partner = 1 - g_rank;
  std::vector<char> memory(2 * kLargest);
  MPI_Request requests[4 * kSizes], answers[kSizes];
  int asks[kSizes];
  return Measure(1500, [&] {
    Round(
        buffers,
        [&] {
          for (int k = 0; k < kSizes; k++) {
            MPI_Irecv(buffers.got[k].data(), kSize[k], MPI_BYTE, partner, kAnswerTag + k, MPI_COMM_WORLD, &requests[k]);
            MPI_Isend(buffers.put[k].data(), kSize[k], MPI_BYTE, partner, kPutTag + k, MPI_COMM_WORLD, &requests[kSizes + k]);
            MPI_Isend(&kSize[k], 1, MPI_INT, partner, kAskTag + k, MPI_COMM_WORLD, &requests[2 * kSizes + k]);
          }
        },
        [&] {
          for (int k = 0; k < kSizes; k++) {
            MPI_Irecv(memory.data(), kSize[k], MPI_BYTE, partner, kPutTag + k, MPI_COMM_WORLD, &requests[3 * kSizes + k]);
          }
          for (int k = 0; k < kSizes; k++) {
            MPI_Recv(&asks[k], 1, MPI_INT, partner, kAskTag + k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Isend(memory.data() + kLargest, asks[k], MPI_BYTE, partner, kAnswerTag + k, MPI_COMM_WORLD, &answers[k]);
          }
          MPI_Waitall(4 * kSizes, requests, MPI_STATUSES_IGNORE);
          MPI_Waitall(kSizes, answers, MPI_STATUSES_IGNORE);
          MPI_Barrier(MPI_COMM_WORLD);
        });
  });
}

}  // namespace

// The synthetic test of M. Tsai's thesis "Hybrid Design of MPI over SCTP" (UBC 2007, section 4.2, figure 4.3).
void Mixed() {
  Buffers buffers;
  Print("mixed", 0, OneSided(buffers));
  Print("mixed_emulated", 0, Emulated(buffers));
}

}  // namespace mpi_bench
