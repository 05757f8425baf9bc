/* filling FILE BALLAST BYTES: collective writes on a disk of BYTES bytes that gets full in the middle of them, and has room again when BALLAST is
 * deleted. All ranks hear MPI_ERR_NO_SPACE, of each kind of call; the same calls succeed afterwards, and the file has what was written then. */
#define _DEFAULT_SOURCE
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/mpi/check.h"

enum { kInts = 1 << 18, kPiece = 64 /* ints that lie together in the file */ };

static int data[kInts], back[kInts];

static MPI_File Open(const char* name, const char* buffering) {
  MPI_File file;
  MPI_Info info;
  MPI_Datatype piece, tile;
  MPI_Info_create(&info);
  MPI_Info_set(info, "romio_cb_write", buffering);
  MPI_Info_set(info, "cb_buffer_size", "65536");
  CHECK_OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &file));
  MPI_Info_free(&info);
  MPI_Type_contiguous(kPiece, MPI_INT, &piece);
  MPI_Type_create_resized(piece, 0, (MPI_Aint)4 * kPiece * world_size, &tile);
  MPI_Type_commit(&tile);
  CHECK_OK(MPI_File_set_view(file, (MPI_Offset)4 * kPiece * world_rank, MPI_INT, tile, "native", MPI_INFO_NULL));
  MPI_Type_free(&piece);
  MPI_Type_free(&tile);
  return file;
}

enum Way { kCollective, kSplit, kNonblocking, kOrdered, kWays };

static int Write(MPI_File file, enum Way way) {
  MPI_Status status;
  MPI_Request request;
  int code;
  switch (way) {
    case kSplit:
      code = MPI_File_write_at_all_begin(file, 0, data, kInts, MPI_INT);
      return code != 0 ? code : MPI_File_write_at_all_end(file, data, &status);
    case kNonblocking:
      code = MPI_File_iwrite_at_all(file, 0, data, kInts, MPI_INT, &request);
      return code != 0 ? code : MPI_Wait(&request, &status);
    case kOrdered:
      /* In bytes that lie together, since the shared pointer needs the same view everywhere. */
      CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
      return MPI_File_write_ordered(file, data, kInts, MPI_INT, &status);
    default:
      return MPI_File_write_at_all(file, 0, data, kInts, MPI_INT, &status);
  }
}

static void Fill(const char* name, const char* ballast, enum Way way, const char* buffering) {
  MPI_Status status;
  MPI_File file = Open(name, buffering);
  for (int i = 0; i < kInts; i++) data[i] = (int)way * 7000000 + world_rank * 1000000 + i;
  CHECK_CLASS(Write(file, way), MPI_ERR_NO_SPACE);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) CHECK_EQ(unlink(ballast), 0);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_OK(Write(file, way));
  memset(back, 0, sizeof back);
  if (way == kOrdered) {
    CHECK_OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    CHECK_OK(MPI_File_read_ordered(file, back, kInts, MPI_INT, &status));
  } else {
    CHECK_OK(MPI_File_read_at_all(file, 0, back, kInts, MPI_INT, &status));
  }
  CHECK_EQ(memcmp(data, back, sizeof data), 0);
  CHECK_OK(MPI_File_close(&file));
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) CHECK_EQ(unlink(name), 0);
}

/* So much that half of what all write has no room. */
static void PutBallast(const char* ballast, long disk_bytes) {
  if (world_rank == 0) {
    static char zeros[1 << 16];
    FILE* file = fopen(ballast, "w");
    if (file == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
    for (long left = disk_bytes - (long)sizeof data * world_size / 2; left > 0; left -= (long)sizeof zeros) fwrite(zeros, 1, sizeof zeros, file);
    fclose(file);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 2);
  for (int way = 0; way < kWays; way++) {
    for (int buffered = 0; buffered < 2; buffered++) {
      PutBallast(argv[2], atol(argv[3]));
      Fill(argv[1], argv[2], (enum Way)way, buffered ? "enable" : "disable");
    }
  }
  return End();
}
