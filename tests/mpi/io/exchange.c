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

/* In external32, collectively, each rank's records in turn: what has the same bits in memory on this machine has them swapped in the file. */
static void Records(MPI_File file, MPI_Offset at, int writes) {
  enum { kRecords = 40, kEach = 5 };
  float floats[kRecords], floats_back[kRecords];
  long long longs[kRecords], longs_back[kRecords];
  unsigned short shorts[kRecords], shorts_back[kRecords];
  signed char chars[kRecords], chars_back[kRecords];
  MPI_Status status;
  const struct {
    MPI_Datatype type;
    int bytes;
    void *out, *back;
  } parts[] = {{MPI_FLOAT, 4, floats, floats_back},
               {MPI_LONG_LONG, 8, longs, longs_back},
               {MPI_UNSIGNED_SHORT, 2, shorts, shorts_back},
               {MPI_SIGNED_CHAR, 1, chars, chars_back}};
  for (int i = 0; i < kRecords; i++) {
    floats[i] = (float)(i - 7) / 16 + (float)world_rank;
    longs[i] = (i - 3) * 0x0102030405060ll + world_rank;
    shorts[i] = (unsigned short)(65535 - 257 * i - world_rank);
    chars[i] = (signed char)(i - 20 - world_rank);
  }
  for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++) {
    MPI_Datatype block, tile;
    MPI_Type_contiguous(kEach, parts[p].type, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)kEach * parts[p].bytes * world_size, &tile);
    MPI_Type_commit(&tile);
    CHECK_OK(MPI_File_set_view(file, at + (MPI_Offset)kEach * parts[p].bytes * world_rank, parts[p].type, tile, "external32", MPI_INFO_NULL));
    if (writes) {
      CHECK_OK(MPI_File_write_all(file, parts[p].out, kRecords, parts[p].type, &status));
    } else {
      CHECK_OK(MPI_File_read_all(file, parts[p].back, kRecords, parts[p].type, &status));
      if (memcmp(parts[p].out, parts[p].back, (size_t)(kRecords * parts[p].bytes)) != 0) REPORT("other values of part %d", (int)p);
    }
    at += (MPI_Offset)kRecords * parts[p].bytes * world_size;
    MPI_Type_free(&block);
    MPI_Type_free(&tile);
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
  Records(file, base + (MPI_Offset)kInts * 14 * world_size, writes);
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
