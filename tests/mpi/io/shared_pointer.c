/* Shared file pointers and ordered calls (MPI 4.0 section 14.4.4). */
#include "io.h"

enum { kEach = 20, kMost = 8 };

/* Each record is somewhere, once. */
static void SharesOnePointer(void) {
  MPI_File file = OpenNew("shared", MPI_MODE_RDWR | MPI_MODE_CREATE);
  MPI_Offset where = -1;
  MPI_Status status;
  int records[kEach * kMost][2], seen[kEach * kMost] = {0};
  CHECK_OK(MPI_File_set_view(file, 0, MPI_2INT, MPI_2INT, "native", MPI_INFO_NULL));
  for (int i = 0; i < kEach; i++) {
    int record[2] = {world_rank, i};
    CHECK_OK(MPI_File_write_shared(file, record, 1, MPI_2INT, &status));
    CHECK_EQ(BytesOf(&status), 8);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_OK(MPI_File_get_position_shared(file, &where));
  CHECK_EQ(where, kEach * world_size);
  CHECK_OK(MPI_File_get_position(file, &where));
  CHECK_EQ(where, 0);
  CHECK_OK(MPI_File_read_at(file, 0, records, kEach * world_size, MPI_2INT, &status));
  int last[kMost];
  for (int r = 0; r < world_size; r++) last[r] = -1;
  for (int i = 0; i < kEach * world_size; i++) {
    int rank = records[i][0], number = records[i][1];
    CHECK(rank >= 0 && rank < world_size && number >= 0 && number < kEach);
    if (rank < 0 || rank >= world_size || number < 0 || number >= kEach) continue;
    CHECK_EQ(number, last[rank] + 1);
    last[rank] = number;
    seen[rank * kEach + number]++;
  }
  for (int i = 0; i < kEach * world_size; i++) CHECK_EQ(seen[i], 1);

  /* Reading shares it, too: all together read each record once. */
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  int count = 0, all = 0;
  for (;;) {
    int record[2];
    CHECK_OK(MPI_File_read_shared(file, record, 1, MPI_2INT, &status));
    if (BytesOf(&status) == 0) break;
    count++;
  }
  MPI_Allreduce(&count, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK_EQ(all, kEach * world_size);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_OK(MPI_File_seek_shared(file, -3, MPI_SEEK_END));
  CHECK_OK(MPI_File_get_position_shared(file, &where));
  CHECK_EQ(where, kEach * world_size - 3);
  if (!MpichDeviates("fails at rank 0 alone, and the others wait for it")) {
    CHECK_CLASS(MPI_File_seek_shared(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
  }
  CloseAndDelete(&file);
}

/* Rank r brings r + 1 ints; they stand in the order of the ranks. */
static void WritesInTheOrderOfRanks(void) {
  MPI_File file = OpenNew("ordered", MPI_MODE_RDWR | MPI_MODE_CREATE);
  MPI_Status status;
  int mine[kMost], back[kMost * kMost], all = world_size * (world_size + 1) / 2;
  CHECK_OK(MPI_File_set_view(file, 4, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i <= world_rank; i++) mine[i] = 1000 * round + 10 * world_rank + i;
    CHECK_OK(MPI_File_write_ordered(file, mine, world_rank + 1, MPI_INT, &status));
    CHECK_EQ(BytesOf(&status), 4 * (world_rank + 1));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int round = 0; round < 3; round++) {
    CHECK_OK(MPI_File_read_at(file, round * all, back, all, MPI_INT, &status));
    for (int rank = 0, at = 0; rank < world_size; rank++)
      for (int i = 0; i <= rank; i++, at++) CHECK_EQ(back[at], 1000 * round + 10 * rank + i);
  }
  CHECK_OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  for (int round = 0; round < 3; round++) {
    CHECK_OK(MPI_File_read_ordered(file, mine, world_rank + 1, MPI_INT, &status));
    for (int i = 0; i <= world_rank; i++) CHECK_EQ(mine[i], 1000 * round + 10 * world_rank + i);
  }
  CloseAndDelete(&file);
}

static void SequentialHasOnlyTheSharedPointer(void) {
  MPI_File file = OpenNew("sequential", MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_SEQUENTIAL);
  MPI_Status status;
  int value = 5;
  CHECK_CLASS(MPI_File_write_at(file, 0, &value, 1, MPI_INT, &status), MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK_CLASS(MPI_File_write(file, &value, 1, MPI_INT, &status), MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK_OK(MPI_File_write_shared(file, &value, 1, MPI_INT, &status));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  CHECK_OK(MPI_File_write_ordered(file, &value, 1, MPI_INT, &status));
  CHECK_OK(MPI_File_close(&file));
  MPI_Barrier(MPI_COMM_WORLD);
  struct stat about;
  CHECK_EQ(stat(file_name, &about), 0);
  CHECK_EQ(about.st_size, 8 * world_size);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) unlink(file_name);
}

/* Reads far behind the end of the file move the pointer by what they asked for; where it is beyond any file no view begins. */
static void NoViewBeginsBehindAnyFile(void) {
  enum { kCalls = 1 << 16 };
  static char few[64];
  MPI_Status status;
  NameFile("far");
  if (world_rank == 0) {
    int fd = open(file_name, O_CREAT | O_WRONLY, 0600);
    CHECK_EQ(write(fd, "some", 4), 4);
    close(fd);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File file = MPI_FILE_NULL;
  CHECK_OK(MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &file));
  for (int i = 0; i < kCalls && world_rank == 0 && failures == 0; i++) {
    CHECK_OK(MPI_File_read_shared_c(file, few, ((MPI_Count)1 << 62) / kCalls, MPI_BYTE, &status));
    CHECK_EQ(BytesOf(&status), i == 0 ? 4 : 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_CLASS(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), MPI_ERR_ARG);
  CloseAndDelete(&file);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  SharesOnePointer();
  WritesInTheOrderOfRanks();
  SequentialHasOnlyTheSharedPointer();
  if (!MpichDeviates("takes counts of gigabytes for less, or stops")) NoViewBeginsBehindAnyFile();
  return End();
}
