/* The forms with MPI_Count (MPI 4.0 section 2.5.8) of each data access. */
#include "io.h"

enum { kInts = 64 };
static int out[kInts], back[kInts];

static void Refill(void) {
  static int round;
  round++;
  for (int i = 0; i < kInts; i++) out[i] = 100000 * round + 1000 * world_rank + i;
  memset(back, -1, sizeof back);
}

static void CheckSame(const char* what, MPI_Status* status) {
  MPI_Count bytes = 0;
  MPI_Get_count_c(status, MPI_BYTE, &bytes);
  CHECK_EQ(bytes, kInts * 4);
  if (memcmp(out, back, sizeof out) != 0) REPORT("%s: other values than were written", what);
}

/* At this rank's place. */
#define PAIR(write, read)                         \
  do {                                            \
    MPI_Status status;                            \
    Refill();                                     \
    CHECK_OK(MPI_File_seek(file, at, MPI_SEEK_SET)); \
    CHECK_OK(write);                              \
    MPI_Barrier(MPI_COMM_WORLD);                  \
    CHECK_OK(MPI_File_seek(file, at, MPI_SEEK_SET)); \
    CHECK_OK(read);                               \
    CheckSame(#read, &status);                    \
    MPI_Barrier(MPI_COMM_WORLD);                  \
  } while (0)

#define WAITED(call) ((call) + MPI_Wait(&request, &status))

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_File file = OpenNew("large", MPI_MODE_RDWR | MPI_MODE_CREATE);
  MPI_Request request;
  MPI_Count extent = 0;
  const MPI_Offset at = (MPI_Offset)world_rank * kInts;
  const MPI_Count n = kInts;
  CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  CHECK_OK(MPI_File_get_type_extent_c(file, MPI_DOUBLE, &extent));
  CHECK_EQ(extent, 8);
  PAIR(MPI_File_write_at_c(file, at, out, n, MPI_INT, &status), MPI_File_read_at_c(file, at, back, n, MPI_INT, &status));
  PAIR(MPI_File_write_c(file, out, n, MPI_INT, &status), MPI_File_read_c(file, back, n, MPI_INT, &status));
  PAIR(MPI_File_write_at_all_c(file, at, out, n, MPI_INT, &status), MPI_File_read_at_all_c(file, at, back, n, MPI_INT, &status));
  PAIR(MPI_File_write_all_c(file, out, n, MPI_INT, &status), MPI_File_read_all_c(file, back, n, MPI_INT, &status));
  PAIR(WAITED(MPI_File_iwrite_at_c(file, at, out, n, MPI_INT, &request)), WAITED(MPI_File_iread_at_c(file, at, back, n, MPI_INT, &request)));
  PAIR(WAITED(MPI_File_iwrite_c(file, out, n, MPI_INT, &request)), WAITED(MPI_File_iread_c(file, back, n, MPI_INT, &request)));
  PAIR(WAITED(MPI_File_iwrite_at_all_c(file, at, out, n, MPI_INT, &request)),
       WAITED(MPI_File_iread_at_all_c(file, at, back, n, MPI_INT, &request)));
  PAIR(WAITED(MPI_File_iwrite_all_c(file, out, n, MPI_INT, &request)), WAITED(MPI_File_iread_all_c(file, back, n, MPI_INT, &request)));
  PAIR(MPI_File_write_at_all_begin_c(file, at, out, n, MPI_INT) + MPI_File_write_at_all_end(file, out, &status),
       MPI_File_read_at_all_begin_c(file, at, back, n, MPI_INT) + MPI_File_read_at_all_end(file, back, &status));
  PAIR(MPI_File_write_all_begin_c(file, out, n, MPI_INT) + MPI_File_write_all_end(file, out, &status),
       MPI_File_read_all_begin_c(file, back, n, MPI_INT) + MPI_File_read_all_end(file, back, &status));
  CHECK_OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  PAIR(MPI_File_write_ordered_c(file, out, n, MPI_INT, &status), MPI_File_read_at_c(file, at, back, n, MPI_INT, &status));
  CHECK_OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  PAIR(MPI_File_write_at_c(file, at, out, n, MPI_INT, &status), MPI_File_read_ordered_c(file, back, n, MPI_INT, &status));
  CHECK_OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  PAIR(MPI_File_write_ordered_begin_c(file, out, n, MPI_INT) + MPI_File_write_ordered_end(file, out, &status),
       MPI_File_read_at_c(file, at, back, n, MPI_INT, &status));
  CHECK_OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  PAIR(MPI_File_write_at_c(file, at, out, n, MPI_INT, &status),
       MPI_File_read_ordered_begin_c(file, back, n, MPI_INT) + MPI_File_read_ordered_end(file, back, &status));
  /* By the shared pointer, one after the other. */
  CHECK_OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  for (int turn = 0; turn < world_size; turn++) {
    MPI_Status status;
    MPI_Barrier(MPI_COMM_WORLD);
    if (turn != world_rank) continue;
    Refill();
    if (turn % 2 == 0) {
      CHECK_OK(MPI_File_write_shared_c(file, out, n, MPI_INT, &status));
    } else {
      CHECK_OK(WAITED(MPI_File_iwrite_shared_c(file, out, n, MPI_INT, &request)));
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  for (int turn = 0; turn < world_size; turn++) {
    MPI_Status status;
    MPI_Barrier(MPI_COMM_WORLD);
    if (turn != world_rank) continue;
    if (turn % 2 == 1) {
      CHECK_OK(MPI_File_read_shared_c(file, back, n, MPI_INT, &status));
    } else {
      CHECK_OK(WAITED(MPI_File_iread_shared_c(file, back, n, MPI_INT, &request)));
    }
    CheckSame("shared", &status);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CloseAndDelete(&file);
  return End();
}
