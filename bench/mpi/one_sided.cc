#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "measure.h"

namespace mpi_bench {
namespace {

// Whose memory a window is of: its own (MPI_Win_allocate), or the program's (MPI_Win_create).
enum class Memory { kAllocated, kOfAllocMem, kOfMalloc };

struct Window {
  explicit Window(int bytes, Memory of = Memory::kAllocated) : of(of) {
    if (of == Memory::kAllocated) {
      MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    } else {
      if (of == Memory::kOfAllocMem) MPI_Alloc_mem(bytes, MPI_INFO_NULL, &memory);
      if (of == Memory::kOfMalloc) memory = static_cast<char*>(std::malloc(static_cast<size_t>(bytes)));
      MPI_Win_create(memory, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    }
    std::fill(memory, memory + bytes, 0);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~Window() {
    MPI_Win_free(&win);
    if (of == Memory::kOfAllocMem) MPI_Free_mem(memory);
    if (of == Memory::kOfMalloc) std::free(memory);
  }
  const Memory of;
  char* memory;
  MPI_Win win;
};

void FencesOf(Memory of, const std::string& suffix) {
  for (const int size : g_quick ? std::vector<int>{8, 4096, 65536, 1048576} : std::vector<int>{8, 512, 4096, 32768, 65536, 262144, 1048576}) {
    Window window(size, of);
    std::vector<long> buffer(size / 8);
    const double guess = 60 + size / 1000.0;
    MPI_Win_fence(0, window.win);
    Print(("put_fence" + suffix).c_str(), size, Measure(guess, [&] {
            if (g_rank == 0) MPI_Put(buffer.data(), size, MPI_BYTE, 1, 0, size, MPI_BYTE, window.win);
            MPI_Win_fence(0, window.win);
          }));
    Print(("get_fence" + suffix).c_str(), size, Measure(guess, [&] {
            if (g_rank == 0) MPI_Get(buffer.data(), size, MPI_BYTE, 1, 0, size, MPI_BYTE, window.win);
            MPI_Win_fence(0, window.win);
          }));
    Print(("accumulate_fence" + suffix).c_str(), size, Measure(guess, [&] {
            if (g_rank == 0) MPI_Accumulate(buffer.data(), size / 8, MPI_LONG, 1, 0, size / 8, MPI_LONG, MPI_SUM, window.win);
            MPI_Win_fence(0, window.win);
          }));
  }
}

// As many integers, 256 bytes apart at the target.
void FencesOfPieces(Memory of, const std::string& suffix) {
  constexpr int kApart = 64;
  for (const int pieces : {10, 100, 1000, 10000}) {
    const int size = 4 * pieces;
    Window window(size * kApart, of);
    std::vector<int> buffer(static_cast<size_t>(pieces));
    MPI_Datatype apart;
    MPI_Type_vector(pieces, 1, kApart, MPI_INT, &apart);
    MPI_Type_commit(&apart);
    MPI_Win_fence(0, window.win);
    Print(("put_pieces" + suffix).c_str(), size, Measure(20 + pieces / 20, [&] {
            if (g_rank == 0) MPI_Put(buffer.data(), pieces, MPI_INT, 1, 0, 1, apart, window.win);
            MPI_Win_fence(0, window.win);
          }));
    Print(("get_pieces" + suffix).c_str(), size, Measure(20 + pieces / 20, [&] {
            if (g_rank == 0) MPI_Get(buffer.data(), pieces, MPI_INT, 1, 0, 1, apart, window.win);
            MPI_Win_fence(0, window.win);
          }));
    Print(("accumulate_pieces" + suffix).c_str(), size, Measure(20 + pieces / 20, [&] {
            if (g_rank == 0) MPI_Accumulate(buffer.data(), pieces, MPI_INT, 1, 0, 1, apart, MPI_SUM, window.win);
            MPI_Win_fence(0, window.win);
          }));
    MPI_Type_free(&apart);
  }
}

}  // namespace

// An operation of rank 0 and a fence of both.
void Fences() { FencesOf(Memory::kAllocated, ""); }

// The same in windows as MPI-2 has them, over memory of MPI_Alloc_mem and of malloc.
void FencesOfCreated() {
  FencesOf(Memory::kOfAllocMem, "_alloc_mem");
  FencesOf(Memory::kOfMalloc, "_malloc");
  FencesOfPieces(Memory::kOfMalloc, "_malloc");
}

// What put_fence has to do at least, by hand in memory that both have: rank 0 copies, each raises its flag and waits for the other's. No
// library's fence of two is faster than that on a machine.
void FencesByHand() {
  constexpr int kLine = 64;
  MPI_Comm on_host;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &on_host);
  int together;
  MPI_Comm_size(on_host, &together);
  for (const int size : g_quick ? std::vector<int>{8, 4096, 65536, 1048576} : std::vector<int>{8, 512, 4096, 32768, 65536, 262144, 1048576}) {
    if (together < 2) break;  // a library that was told that no rank has company on its host
    char *mine, *other;
    MPI_Aint bytes;
    int unit;
    MPI_Win win;
    MPI_Win_allocate_shared(size + 2 * kLine, 1, MPI_INFO_NULL, on_host, &mine, &win);
    MPI_Win_shared_query(win, 1 - g_rank, &bytes, &unit, &other);
    const auto at_line = [&](char* memory) { return memory + (kLine - reinterpret_cast<uintptr_t>(memory) % kLine) % kLine; };
    mine = at_line(mine), other = at_line(other);
    auto& my_flag = *reinterpret_cast<std::atomic<long>*>(mine);
    auto& other_flag = *reinterpret_cast<std::atomic<long>*>(other);
    my_flag = 0;
    std::vector<char> buffer(static_cast<size_t>(size), 1);
    long turn = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    Print("by_hand", size, Measure(60 + size / 1000.0, [&] {
            if (g_rank == 0) std::memcpy(other + kLine, buffer.data(), static_cast<size_t>(size));
            my_flag.store(++turn, std::memory_order_release);
            while (other_flag.load(std::memory_order_acquire) < turn) {
            }
          }));
    MPI_Win_free(&win);
  }
  MPI_Comm_free(&on_host);
}

// Operations of 8 bytes per second, 64 in flight, in one epoch of MPI_Win_lock_all; the target waits in MPI for the end.
void Rates() {
  constexpr int kInFlight = 64;
  Window window(kInFlight * 8);
  std::vector<long> buffer(kInFlight);
  MPI_Win_lock_all(0, window.win);
  const auto rate = [&](const char* name, auto operation) {
    std::vector<double> batches;
    for (int batch = -1; batch < (g_quick ? 3 : 9); batch++) {
      const int times = g_quick ? 20 : 100;
      const double start = MPI_Wtime();
      for (int i = 0; i < times && g_rank == 0; i++) {
        for (int k = 0; k < kInFlight; k++) operation(k);
        MPI_Win_flush_local(1, window.win);
      }
      if (g_rank == 0) MPI_Win_flush(1, window.win);
      if (batch >= 0) batches.push_back(kInFlight * times / (MPI_Wtime() - start));
      MPI_Barrier(MPI_COMM_WORLD);
    }
    Print(name, 8, Median(batches));
  };
  rate("put_rate", [&](int k) { MPI_Put(&buffer[k], 8, MPI_BYTE, 1, 8 * k, 8, MPI_BYTE, window.win); });
  rate("get_rate", [&](int k) { MPI_Get(&buffer[k], 8, MPI_BYTE, 1, 8 * k, 8, MPI_BYTE, window.win); });
  MPI_Win_unlock_all(window.win);
}

// One operation of 8 bytes and MPI_Win_flush, in one epoch of MPI_Win_lock_all; the target waits in MPI for the end.
void Flushes() {
  Window window(8);
  long one = 1, before = 0;
  MPI_Win_lock_all(0, window.win);
  const auto flushed = [&](const char* name, auto operation) {
    std::vector<double> batches;
    for (int batch = -1; batch < (g_quick ? 3 : 9); batch++) {
      const int times = g_quick ? 500 : 2000;
      const double start = MPI_Wtime();
      for (int i = 0; i < times && g_rank == 0; i++) {
        operation();
        MPI_Win_flush(1, window.win);
      }
      if (batch >= 0) batches.push_back((MPI_Wtime() - start) * 1e6 / times);
      MPI_Barrier(MPI_COMM_WORLD);
    }
    Print(name, 8, Median(batches));
  };
  flushed("put_flush", [&] { MPI_Put(&one, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, window.win); });
  flushed("get_flush", [&] { MPI_Get(&before, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, window.win); });
  flushed("fetch_and_op", [&] { MPI_Fetch_and_op(&one, &before, MPI_LONG, 1, 0, MPI_SUM, window.win); });
  MPI_Win_unlock_all(window.win);
}

// Rank 0 locks, puts and unlocks; rank 1 waits in MPI for its end.
void Locks() {
  for (const int size : g_quick ? std::vector<int>{8, 65536} : std::vector<int>{8, 4096, 65536, 1048576}) {
    Window window(size);
    std::vector<char> buffer(size);
    std::vector<double> batches;
    for (int batch = -1; batch < 5; batch++) {
      constexpr int kTimes = 30;
      const double start = MPI_Wtime();
      for (int i = 0; i < kTimes && g_rank == 0; i++) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window.win);
        MPI_Put(buffer.data(), size, MPI_BYTE, 1, 0, size, MPI_BYTE, window.win);
        MPI_Win_unlock(1, window.win);
      }
      if (batch >= 0) batches.push_back((MPI_Wtime() - start) * 1e6 / kTimes);
      MPI_Barrier(MPI_COMM_WORLD);
    }
    Print("lock_put_unlock", size, Median(batches));
  }
}

// The same while rank 1 computes for a second and calls nothing: again and again, a millisecond apart.
void PassiveTarget() {
  Window window(8);
  long value = 1;
  if (g_rank == 0) {  // the connection is there
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window.win);
    MPI_Put(&value, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, window.win);
    MPI_Win_unlock(1, window.win);
  }
  std::vector<double> times;
  times.reserve(4096);
  for (int i = 0; i < (g_quick ? 1 : 3); i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    if (g_rank == 1) {
      while (MPI_Wtime() - start < 1) {
      }
    } else {
      while (MPI_Wtime() - start < 0.02) {  // rank 1 is in its computation
      }
      do {
        const double begin = MPI_Wtime();
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window.win);
        MPI_Put(&value, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, window.win);
        MPI_Win_unlock(1, window.win);
        const double end = MPI_Wtime();
        times.push_back((end - begin) * 1e6);
        while (MPI_Wtime() - end < 0.001) {
        }
      } while (MPI_Wtime() - start < 0.9);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (g_rank == 0) Print("passive_put", 8, Median(times));
}

}  // namespace mpi_bench
