/* Hints of windows: what is in force, and what is not is not told (MPI 4.0 section 12.2.7). */
#include <stdint.h>

#include "tests/mpi/check.h"

static const char* InForce(MPI_Win win, const char* key) {
  static char value[256];
  MPI_Info info;
  int found;
  CHECK_OK(MPI_Win_get_info(win, &info));
  MPI_Info_get(info, key, sizeof value - 1, value, &found);
  MPI_Info_free(&info);
  return found ? value : "not there";
}

static void Defaults(MPI_Win win) {
  CHECK_STR(InForce(win, "no_locks"), "false");
  CHECK_STR(InForce(win, "accumulate_ordering"), "rar,raw,war,waw");
  CHECK_STR(InForce(win, "accumulate_ops"), "same_op_no_op");
  CHECK_STR(InForce(win, "same_size"), "false");
  CHECK_STR(InForce(win, "same_disp_unit"), "false");
  if (!MpichDeviates("it has no mpi_accumulate_granularity")) CHECK_STR(InForce(win, "mpi_accumulate_granularity"), "0");
}

static void OfEachKind(void) {
  int* memory;
  MPI_Win win;
  MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  Defaults(win);
  MPI_Win_free(&win);
  MPI_Win_allocate(4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  Defaults(win);
  MPI_Win_free(&win);
  MPI_Win_allocate_shared(4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  Defaults(win);
  CHECK_STR(InForce(win, "alloc_shared_noncontig"), "false");
  MPI_Win_free(&win);
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  Defaults(win);
  MPI_Win_free(&win);
}

static void Given(void) {
  int* memory;
  MPI_Win win;
  MPI_Info info;
  const int mpich = MpichDeviates("values that a key cannot have are taken for some that it can");
  MPI_Info_create(&info);
  MPI_Info_set(info, "no_locks", "true");
  MPI_Info_set(info, "accumulate_ordering", "none");
  MPI_Info_set(info, "same_size", "true");
  MPI_Info_set(info, "of_no_meaning", "true");
  MPI_Info_set(info, "mpi_minimum_memory_alignment", "256");
  MPI_Win_allocate(3 + world_rank, 1, info, MPI_COMM_WORLD, &memory, &win);
  CHECK_STR(InForce(win, "no_locks"), "true");
  CHECK_STR(InForce(win, "accumulate_ordering"), "none");
  CHECK_STR(InForce(win, "accumulate_ops"), "same_op_no_op");
  CHECK_STR(InForce(win, "same_size"), "true");
  CHECK_STR(InForce(win, "of_no_meaning"), "not there");
  if (!mpich) {
    CHECK_STR(InForce(win, "mpi_minimum_memory_alignment"), "256");
    CHECK_EQ((uintptr_t)memory % 256, 0);
  }
  MPI_Info_free(&info);
  MPI_Info_create(&info);
  MPI_Info_set(info, "no_locks", "false");
  MPI_Info_set(info, "accumulate_ordering", "rar,waw");
  MPI_Info_set(info, "accumulate_ops", "same_op");
  MPI_Info_set(info, "alloc_shared_noncontig", "true");
  if (!mpich) MPI_Info_set(info, "same_size", "perhaps");
  CHECK_OK(MPI_Win_set_info(win, info));
  CHECK_STR(InForce(win, "no_locks"), "false");
  CHECK_STR(InForce(win, "accumulate_ordering"), "rar,waw");
  CHECK_STR(InForce(win, "accumulate_ops"), "same_op");
  CHECK_STR(InForce(win, "same_size"), "true");
  if (!mpich) CHECK_STR(InForce(win, "alloc_shared_noncontig"), "false"); /* that is over */
  MPI_Info_free(&info);
  MPI_Win_free(&win);
}

static void AlignedMemory(void) {
  const char* const wanted[] = {"16", "512", "65536", "3", "page"};
  const int count = MpichDeviates("it dies of what is no alignment") ? 3 : 5;
  for (int i = 0; i < count; i++) {
    void* memory;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_minimum_memory_alignment", wanted[i]);
    CHECK_OK(MPI_Alloc_mem(1000, info, &memory));
    memset(memory, 1, 1000);
    if (i < 3) CHECK_EQ((uintptr_t)memory % (uintptr_t)atoi(wanted[i]), 0);
    MPI_Free_mem(memory);
    MPI_Info_free(&info);
  }
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  OfEachKind();
  Given();
  AlignedMemory();
  return End();
}
