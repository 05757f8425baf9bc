/* lean FILE: a rank has so many pieces in a window of collective buffering that the aggregator has no memory for the list of them. All hear that, and
 * when there is memory the same calls succeed. */
#include <sys/resource.h>
#include <unistd.h>

#include "tests/mpi/check.h"

/* Pieces of one and two bytes in turn, with a byte between them: none is like the one before, so that the list is 13 times as long as the window. */
enum { kTile = 5, kInTile = 3, kTiles = 1000000, kBytes = kTiles * kInTile, kSpare = 24 << 20 };

static char data[kBytes], back[kBytes];

static void SetRoom(int scarce) {
  static struct rlimit all;
  struct rlimit limit;
  long pages = 0;
  if (world_rank != 0) return;
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

int main(int argc, char** argv) {
  int lengths[2] = {1, 2}, places[2] = {0, 2};
  MPI_Datatype pieces, tile;
  MPI_Info info;
  MPI_File file;
  Begin(&argc, &argv);
  if (argc != 2) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Info_create(&info);
  MPI_Info_set(info, "collective_buffering", "true");
  MPI_Info_set(info, "cb_nodes", "1");
  CHECK_OK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDWR | MPI_MODE_CREATE, info, &file));
  MPI_Type_indexed(2, lengths, places, MPI_CHAR, &pieces);
  MPI_Type_create_resized(pieces, 0, kTile, &tile);
  MPI_Type_commit(&tile);
  CHECK_OK(MPI_File_set_view(file, 0, MPI_CHAR, tile, "native", MPI_INFO_NULL));
  for (int i = 0; i < kBytes; i++) data[i] = (char)(i * 7 % 251);
  const int count = world_rank == 1 ? kBytes : 0;
  CHECK_OK(MPI_File_write_at_all(file, 0, data, count / kTiles, MPI_CHAR, MPI_STATUS_IGNORE)); /* the buffers are there then */
  SetRoom(1);
  CHECK_CLASS(MPI_File_write_at_all(file, 0, data, count, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_NO_MEM);
  SetRoom(0);
  CHECK_OK(MPI_File_write_at_all(file, 0, data, count, MPI_CHAR, MPI_STATUS_IGNORE));
  SetRoom(1);
  CHECK_CLASS(MPI_File_read_at_all(file, 0, back, count, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_NO_MEM);
  SetRoom(0);
  CHECK_OK(MPI_File_read_at_all(file, 0, back, count, MPI_CHAR, MPI_STATUS_IGNORE));
  CHECK_EQ(memcmp(back, data, (size_t)count), 0);
  CHECK_OK(MPI_File_close(&file));
  MPI_Info_free(&info);
  MPI_Type_free(&pieces);
  MPI_Type_free(&tile);
  return End();
}
