/* Atomic mode, and what sync, barrier, sync promises (MPI 4.0 section 14.6). */
#include "io.h"

enum { kBlock = 20000, kRounds = 15 };

/* All write the same bytes at once; who reads finds those of one of them, never of two. */
static void AccessesAreAtomic(void) {
  static unsigned char mine[kBlock], back[kBlock];
  MPI_File file = OpenNew("atomic", MPI_MODE_RDWR | MPI_MODE_CREATE);
  MPI_Datatype every_other;
  MPI_Status status;
  int flag = -1;
  CHECK_OK(MPI_File_get_atomicity(file, &flag));
  CHECK_EQ(flag, 0);
  CHECK_OK(MPI_File_set_atomicity(file, 1));
  CHECK_OK(MPI_File_get_atomicity(file, &flag));
  CHECK_EQ(flag, 1);
  /* Scattered, so that it takes several calls of the operating system. */
  MPI_Type_create_resized(MPI_INT, 0, 8, &every_other);
  MPI_Type_commit(&every_other);
  CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, every_other, "native", MPI_INFO_NULL));
  memset(mine, 0, sizeof mine);
  if (world_rank == 0) CHECK_OK(MPI_File_write_at(file, 0, mine, kBlock, MPI_BYTE, &status));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int round = 0; round < kRounds; round++) {
    memset(mine, world_rank + 1, sizeof mine);
    if ((round + world_rank) % 2 == 0) {
      CHECK_OK(MPI_File_write_at(file, 0, mine, kBlock, MPI_BYTE, &status));
    } else {
      CHECK_OK(MPI_File_read_at(file, 0, back, kBlock, MPI_BYTE, &status));
      for (int i = 1; i < kBlock; i++) {
        if (back[i] == back[0]) continue;
        REPORT("byte %d is of rank %d, the first of rank %d", i, back[i] - 1, back[0] - 1);
        break;
      }
    }
    /* Together, too. */
    if (round % 5 == 4) CHECK_OK(MPI_File_write_at_all(file, 0, mine, kBlock, MPI_BYTE, &status));
  }
  MPI_Type_free(&every_other);
  CloseAndDelete(&file);
}

static void SyncBarrierSyncShowsWhatWasWritten(void) {
  MPI_File file = OpenNew("sync", MPI_MODE_RDWR | MPI_MODE_CREATE);
  MPI_Status status;
  int value = 0;
  for (int round = 0; round < 5; round++) {
    const int writer = round % world_size, written = 1000 + round;
    if (world_rank == writer) CHECK_OK(MPI_File_write_at(file, 100, &written, 4, MPI_BYTE, &status));
    CHECK_OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_File_sync(file));
    CHECK_OK(MPI_File_read_at(file, 100, &value, 4, MPI_BYTE, &status));
    CHECK_EQ(value, written);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  CloseAndDelete(&file);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  AccessesAreAtomic();
  SyncBarrierSyncShowsWhatWasWritten();
  return End();
}
