/* Views, file pointers and data representations (MPI 4.0 sections 14.3 and 14.5). */
#include "io.h"

enum { kTiles = 5 };

/* Rank r sees every world_size'th int, from the r'th on. */
static MPI_Datatype Strided(void) {
  MPI_Datatype type;
  MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)sizeof(int) * world_size, &type);
  MPI_Type_commit(&type);
  return type;
}

static void ReadsAndWritesThroughAView(void) {
  MPI_File file = OpenNew("views", MPI_MODE_RDWR | MPI_MODE_CREATE);
  MPI_Datatype strided = Strided(), etype, filetype;
  MPI_Offset disp = -1, where = -1;
  MPI_Status status;
  char datarep[MPI_MAX_DATAREP_STRING + 1];
  int values[kTiles], back[kTiles + 2];
  CHECK_OK(MPI_File_get_view(file, &disp, &etype, &filetype, datarep));
  CHECK_EQ(disp, 0);
  CHECK(etype == MPI_BYTE);
  CHECK(filetype == MPI_BYTE);
  CHECK_STR(datarep, "native");

  CHECK_OK(MPI_File_set_view(file, 8 + (MPI_Offset)sizeof(int) * world_rank, MPI_INT, strided, "native", MPI_INFO_NULL));
  CHECK_OK(MPI_File_get_view(file, &disp, &etype, &filetype, datarep));
  CHECK_EQ(disp, 8 + (MPI_Offset)sizeof(int) * world_rank);
  CHECK(etype == MPI_INT);
  MPI_Aint lb, extent;
  MPI_Type_get_extent(filetype, &lb, &extent);
  CHECK_EQ(extent, sizeof(int) * world_size);
  MPI_Type_free(&filetype);
  MPI_Type_free(&strided); /* the view keeps it */

  for (int i = 0; i < kTiles; i++) values[i] = 1000 * i + world_rank;
  CHECK_OK(MPI_File_write(file, values, 2, MPI_INT, &status));
  CHECK_EQ(BytesOf(&status), 8);
  CHECK_OK(MPI_File_write_at(file, 2, values + 2, kTiles - 2, MPI_INT, &status));
  CHECK_OK(MPI_File_get_position(file, &where));
  CHECK_EQ(where, 2);
  CHECK_OK(MPI_File_get_byte_offset(file, 3, &where));
  CHECK_EQ(where, 8 + 4 * (world_rank + 3 * world_size));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_OK(MPI_File_seek(file, 0, MPI_SEEK_END));
  CHECK_OK(MPI_File_get_position(file, &where));
  CHECK_EQ(where, kTiles);
  CHECK_OK(MPI_File_seek(file, -2, MPI_SEEK_CUR));
  memset(back, -1, sizeof back);
  CHECK_OK(MPI_File_read(file, back, 4, MPI_INT, &status)); /* the file ends before */
  CHECK_EQ(back[0], values[3]);
  CHECK_EQ(back[1], values[4]);
  if (!MpichDeviates("tells of bytes behind the end of the file where it sieves")) {
    CHECK_EQ(BytesOf(&status), 8);
    CHECK_EQ(back[2], -1);
  }
  CHECK_CLASS(MPI_File_seek(file, -100, MPI_SEEK_CUR), MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_seek(file, 0, 12345), MPI_ERR_ARG);

  /* As bytes. */
  int plain[64];
  CHECK_OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  CHECK_OK(MPI_File_get_position(file, &where));
  CHECK_EQ(where, 0);
  CHECK_OK(MPI_File_read_at(file, 0, plain, 8 + 4 * kTiles * world_size, MPI_BYTE, &status));
  CHECK_EQ(BytesOf(&status), 8 + 4 * kTiles * world_size);
  for (int i = 0; i < kTiles * world_size; i++) CHECK_EQ(plain[2 + i], 1000 * (i / world_size) + i % world_size);
  CloseAndDelete(&file);
}

static void ReadsAndWritesScatteredMemory(void) {
  MPI_File file = OpenNew("memory", MPI_MODE_RDWR | MPI_MODE_CREATE);
  MPI_Datatype column, pair;
  int matrix[4][6], back[4][6];
  MPI_Status status;
  MPI_Type_vector(4, 2, 6, MPI_INT, &column);
  MPI_Type_commit(&column);
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  for (int i = 0; i < 24; i++) matrix[i / 6][i % 6] = i + 100 * world_rank;
  memset(back, 0, sizeof back);
  CHECK_OK(MPI_File_set_view(file, 0, pair, pair, "native", MPI_INFO_NULL));
  CHECK_OK(MPI_File_write_at(file, 4 * world_rank, &matrix[0][1], 1, column, &status));
  CHECK_EQ(BytesOf(&status), 32);
  CHECK_OK(MPI_File_read_at(file, 4 * world_rank, &back[0][1], 1, column, &status));
  for (int i = 0; i < 24; i++) CHECK_EQ(back[i / 6][i % 6], i % 6 == 1 || i % 6 == 2 ? matrix[i / 6][i % 6] : 0);
  /* Not a whole number of etypes. */
  CHECK_CLASS(MPI_File_write_at(file, 0, matrix, 3, MPI_INT, &status), MPI_ERR_IO);
  CHECK_OK(MPI_File_write_at(file, 4 * world_rank, NULL, 0, MPI_INT, &status));
  CHECK_EQ(BytesOf(&status), 0);
  MPI_Type_free(&column);
  MPI_Type_free(&pair);
  CloseAndDelete(&file);
}

static void SeesSubarrays(void) {
  MPI_File file = OpenNew("subarray", MPI_MODE_RDWR | MPI_MODE_CREATE);
  /* Columns of a matrix of 6 rows: each rank has 3 of 3 * world_size. */
  int sizes[2] = {6, 3 * world_size}, subsizes[2] = {6, 3}, starts[2] = {0, 3 * world_rank};
  double mine[18], whole[18 * 8];
  MPI_Datatype part;
  MPI_Status status;
  MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &part);
  MPI_Type_commit(&part);
  CHECK_OK(MPI_File_set_view(file, 0, MPI_DOUBLE, part, "native", MPI_INFO_NULL));
  for (int i = 0; i < 18; i++) mine[i] = 100 * (i / 3) + 3 * world_rank + i % 3;
  CHECK_OK(MPI_File_write_all(file, mine, 18, MPI_DOUBLE, &status));
  CHECK_EQ(BytesOf(&status), 144);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_size <= 8) {
    CHECK_EQ(ReadPlain(whole, sizeof whole), 144 * world_size);
    for (int row = 0; row < 6; row++)
      for (int column = 0; column < sizes[1]; column++) CHECK_EQ(whole[row * sizes[1] + column], 100 * row + column);
  }
  memset(mine, 0, sizeof mine);
  CHECK_OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
  CHECK_OK(MPI_File_read_all(file, mine, 18, MPI_DOUBLE, &status));
  CHECK_EQ(BytesOf(&status), 144);
  for (int i = 0; i < 18; i++) CHECK_EQ(mine[i], 100 * (i / 3) + 3 * world_rank + i % 3);
  MPI_Type_free(&part);
  CloseAndDelete(&file);
}

static void WritesExternal32(void) {
  MPI_File file = OpenNew("external32", MPI_MODE_RDWR | MPI_MODE_CREATE);
  const int value = 0x01020304 + world_rank;
  const double real = 1.5;
  unsigned char plain[12];
  int back = 0;
  double real_back = 0;
  MPI_Aint extent = 0;
  MPI_Status status;
  MPI_Datatype both;
  int lengths[2] = {1, 1};
  MPI_Aint displacements[2] = {0, 4};
  MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
  MPI_Type_create_struct(2, lengths, displacements, types, &both);
  MPI_Type_commit(&both);
  CHECK_OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "external32", MPI_INFO_NULL));
  CHECK_OK(MPI_File_get_type_extent(file, MPI_INT, &extent));
  CHECK_EQ(extent, 4);
  CHECK_OK(MPI_File_get_type_extent(file, MPI_DOUBLE, &extent));
  CHECK_EQ(extent, 8);
  CHECK_OK(MPI_File_write_at(file, 12 * world_rank, &value, 1, MPI_INT, &status));
  CHECK_OK(MPI_File_write_at(file, 12 * world_rank + 4, &real, 1, MPI_DOUBLE, &status));
  CHECK_OK(MPI_File_read_at(file, 12 * world_rank, &back, 1, MPI_INT, &status));
  CHECK_EQ(back, value);
  CHECK_OK(MPI_File_read_at(file, 12 * world_rank + 4, &real_back, 1, MPI_DOUBLE, &status));
  CHECK_EQ(real_back * 2, 3);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) {
    CHECK_EQ(ReadPlain(plain, 12), 12);
    CHECK_EQ(plain[0], 1);
    CHECK_EQ(plain[3], 4);
    CHECK_EQ(plain[4], 0x3f);
    CHECK_EQ(plain[5], 0xf8);
  }
  MPI_Type_free(&both);
  CloseAndDelete(&file);
}

static void RefusesViewsThatMakeNone(void) {
  MPI_File file = OpenNew("bad_views", MPI_MODE_RDWR | MPI_MODE_CREATE);
  MPI_Datatype three, uncommitted, backwards;
  int lengths[2] = {1, 1}, displacements[2] = {4, 0};
  MPI_Type_contiguous(3, MPI_BYTE, &three);
  MPI_Type_commit(&three);
  MPI_Type_contiguous(3, MPI_INT, &uncommitted);
  MPI_Type_indexed(2, lengths, displacements, MPI_INT, &backwards);
  MPI_Type_commit(&backwards);
  CHECK_CLASS(MPI_File_set_view(file, -8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_set_view(file, 0, MPI_INT, three, "native", MPI_INFO_NULL), MPI_ERR_ARG);
  CHECK_CLASS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "no such representation", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
  if (!MpichDeviates("takes types that were not committed, and calls MPI_DATATYPE_NULL a bad argument")) {
    CHECK_CLASS(MPI_File_set_view(file, 0, MPI_INT, MPI_DATATYPE_NULL, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_File_set_view(file, 0, MPI_INT, uncommitted, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
  }
  if (!MpichDeviates("takes displacements that descend, and writes to other places")) {
    CHECK_CLASS(MPI_File_set_view(file, 0, MPI_INT, backwards, "native", MPI_INFO_NULL), MPI_ERR_IO);
  }
  MPI_Type_free(&three);
  MPI_Type_free(&uncommitted);
  MPI_Type_free(&backwards);
  CloseAndDelete(&file);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  ReadsAndWritesThroughAView();
  ReadsAndWritesScatteredMemory();
  SeesSubarrays();
  WritesExternal32();
  RefusesViewsThatMakeNone();
  return End();
}
