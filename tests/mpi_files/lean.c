/* lean FILE WHERE: a rank has no memory for what it exchanges in collective buffering: the aggregator, or one that has data; for lists of pieces, or for the
 * data itself. All hear that, and when there is memory the same calls succeed. WHERE is "together" where the ranks have the buffer in common, so that data
 * takes no other memory, or "apart". */
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/mpi/check.h"

/* Pieces of one and two bytes in turn, with a byte between them: none is like the one before, so that the list is 13 times as long as the window. And a few large
 * pieces. */
enum { kTile = 5, kInTile = 3, kTiles = 1000000, kBlock = 1 << 20, kBlocks = 32, kSpare = 24 << 20, kMost = kBlocks * kBlock };

static char data[kMost], back[kMost];

/* For the rank `who`. */
static void SetRoom(int who, int scarce) {
  static struct rlimit all;
  struct rlimit limit;
  long pages = 0;
  if (world_rank != who) return;
  if (!scarce) {
    setrlimit(RLIMIT_AS, &all);
    return;
  }
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld", &pages) != 1) MPI_Abort(MPI_COMM_WORLD, 2);
  fclose(file);
  getrlimit(RLIMIT_AS, &all);
  limit = all;
  limit.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + kSpare;
  setrlimit(RLIMIT_AS, &limit);
}

/* `bytes` of rank 1, as `filetype` has them, while rank `who` has little memory; and, which takes long for a million pieces, when it has enough. */
static void Exchange(MPI_File file, MPI_Datatype filetype, int bytes, int who, int expected, int again) {
  const int count = world_rank == 1 ? bytes : 0;
  MPI_Status status;
  int got;
  memset(back, 0, sizeof back);
  CHECK_OK(MPI_File_set_view(file, 0, MPI_CHAR, filetype, "native", MPI_INFO_NULL));
  SetRoom(who, 1);
  CHECK_CLASS(MPI_File_write_at_all(file, 0, data, count, MPI_CHAR, MPI_STATUS_IGNORE), expected);
  SetRoom(who, 0);
  if (again) CHECK_OK(MPI_File_write_at_all(file, 0, data, count, MPI_CHAR, MPI_STATUS_IGNORE));
  SetRoom(who, 1);
  CHECK_CLASS(MPI_File_read_at_all(file, 0, back, count, MPI_CHAR, MPI_STATUS_IGNORE), expected);
  SetRoom(who, 0);
  if (!again) return;
  CHECK_OK(MPI_File_read_at_all(file, 0, back, count, MPI_CHAR, &status));
  CHECK_OK(MPI_Get_count(&status, MPI_CHAR, &got));
  CHECK_EQ(got, count);
  CHECK_EQ(memcmp(back, data, (size_t)count), 0);
}

int main(int argc, char** argv) {
  int lengths[2] = {1, 2}, places[2] = {0, 2};
  MPI_Datatype pieces, tile, block, blocks;
  MPI_Info info;
  MPI_File file;
  mallopt(M_MMAP_THRESHOLD, 1 << 20); /* what is freed does not stay */
  Begin(&argc, &argv);
  if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
  const int data_takes = strcmp(argv[2], "apart") == 0 ? MPI_ERR_NO_MEM : MPI_SUCCESS;
  MPI_Info_create(&info);
  MPI_Info_set(info, "collective_buffering", "true");
  MPI_Info_set(info, "cb_nodes", "1");
  MPI_Info_set(info, "cb_buffer_size", "67108864");
  CHECK_OK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDWR | MPI_MODE_CREATE, info, &file));
  MPI_Type_indexed(2, lengths, places, MPI_CHAR, &pieces);
  MPI_Type_create_resized(pieces, 0, kTile, &tile);
  MPI_Type_commit(&tile);
  MPI_Type_contiguous(kBlock, MPI_CHAR, &block);
  MPI_Type_create_resized(block, 0, 2 * kBlock, &blocks);
  MPI_Type_commit(&blocks);
  for (int i = 0; i < kMost; i++) data[i] = (char)(i * 7LL % 251);
  CHECK_OK(MPI_File_set_view(file, 0, MPI_CHAR, tile, "native", MPI_INFO_NULL));
  CHECK_OK(MPI_File_write_at_all(file, 0, data, world_rank == 1 ? kInTile : 0, MPI_CHAR, MPI_STATUS_IGNORE)); /* the buffers are there then */
  for (int who = 0; who < 2; ++who) {
    Exchange(file, tile, kTiles * kInTile, who, MPI_ERR_NO_MEM, who == 0);
    Exchange(file, blocks, kBlocks * kBlock, who, data_takes, 1);
  }
  CHECK_OK(MPI_File_close(&file));
  MPI_Info_free(&info);
  MPI_Type_free(&pieces);
  MPI_Type_free(&tile);
  MPI_Type_free(&block);
  MPI_Type_free(&blocks);
  return End();
}
