/* exchange [write|read FILE]: a file with a strided native part and one in external32, for another MPI library to read. Without words it does
 * both. */
#include "io.h"

enum { kInts = 300 };

static void Describe(int* ints, double* reals, short* shorts) {
  for (int i = 0; i < kInts; i++) {
    ints[i] = 100000 * world_rank + i * 7 - 3;
    reals[i] = world_rank + i / 8.0;
    shorts[i] = (short)(i * 100 - world_rank);
  }
}

static void Transfer(const char* name, int writes) {
  int ints[kInts], ints_back[kInts];
  double reals[kInts], reals_back[kInts];
  short shorts[kInts], shorts_back[kInts];
  MPI_File file;
  MPI_Datatype blocks, tile;
  MPI_Status status;
  MPI_Offset base = 16 + (MPI_Offset)kInts * 4 * world_size;
  Describe(ints, reals, shorts);
  CHECK_OK(MPI_File_open(MPI_COMM_WORLD, name, writes ? MPI_MODE_WRONLY | MPI_MODE_CREATE : MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  MPI_Type_contiguous(3, MPI_INT, &blocks);
  MPI_Type_create_resized(blocks, 0, 12 * world_size, &tile);
  MPI_Type_commit(&tile);
  CHECK_OK(MPI_File_set_view(file, 16 + 12 * world_rank, MPI_INT, tile, "native", MPI_INFO_NULL));
  if (writes) {
    CHECK_OK(MPI_File_write_all(file, ints, kInts, MPI_INT, &status));
  } else {
    CHECK_OK(MPI_File_read_all(file, ints_back, kInts, MPI_INT, &status));
    CHECK_EQ(memcmp(ints, ints_back, sizeof ints), 0);
  }
  MPI_Type_free(&blocks);
  MPI_Type_free(&tile);
  CHECK_OK(MPI_File_set_view(file, base + (MPI_Offset)world_rank * kInts * 14, MPI_BYTE, MPI_BYTE, "external32", MPI_INFO_NULL));
  if (writes) {
    CHECK_OK(MPI_File_write(file, reals, kInts, MPI_DOUBLE, &status));
    CHECK_OK(MPI_File_write(file, ints, kInts, MPI_INT, &status));
    CHECK_OK(MPI_File_write(file, shorts, kInts, MPI_SHORT, &status));
  } else {
    CHECK_OK(MPI_File_read(file, reals_back, kInts, MPI_DOUBLE, &status));
    CHECK_OK(MPI_File_read(file, ints_back, kInts, MPI_INT, &status));
    CHECK_OK(MPI_File_read(file, shorts_back, kInts, MPI_SHORT, &status));
    CHECK_EQ(memcmp(reals, reals_back, sizeof reals), 0);
    CHECK_EQ(memcmp(ints, ints_back, sizeof ints), 0);
    CHECK_EQ(memcmp(shorts, shorts_back, sizeof shorts), 0);
  }
  CHECK_OK(MPI_File_close(&file));
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  if (argc == 3) {
    Transfer(argv[2], strcmp(argv[1], "write") == 0);
  } else {
    NameFile("exchange");
    Transfer(file_name, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    Transfer(file_name, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 0) unlink(file_name);
  }
  return End();
}
