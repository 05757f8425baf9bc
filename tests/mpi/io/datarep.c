/* Data representations of the program (MPI 4.0 section 14.5.3): ints have six bytes in the file, of which the first two are a mark. */
#include "io.h"

static int Extent(MPI_Datatype type, MPI_Aint* extent, void* state) {
  CHECK_EQ(*(int*)state, 77);
  *extent = type == MPI_INT ? 6 : 3;
  return MPI_SUCCESS;
}

static int Write(void* user, MPI_Datatype type, int count, void* file, MPI_Offset position, void* state) {
  CHECK(type == MPI_INT);
  CHECK_EQ(*(int*)state, 77);
  unsigned char* to = file;
  const int* from = user;
  for (int i = 0; i < count; i++, to += 6) {
    to[0] = 'i';
    to[1] = ':';
    memcpy(to + 2, from + position + i, 4);
  }
  return MPI_SUCCESS;
}

static int Read(void* user, MPI_Datatype type, int count, void* file, MPI_Offset position, void* state) {
  CHECK(type == MPI_INT);
  CHECK_EQ(*(int*)state, 77);
  const unsigned char* from = file;
  int* to = user;
  for (int i = 0; i < count; i++, from += 6) {
    CHECK_EQ(from[0], 'i');
    memcpy(to + position + i, from + 2, 4);
  }
  return MPI_SUCCESS;
}

static int Vast(MPI_Datatype type, MPI_Aint* extent, void* state) {
  (void)type, (void)state;
  *extent = (MPI_Aint)1 << 40;
  return MPI_SUCCESS;
}

static int Fails(void* user, MPI_Datatype type, int count, void* file, MPI_Offset position, void* state) {
  (void)user, (void)type, (void)count, (void)file, (void)position, (void)state;
  return MPI_ERR_OTHER;
}

int main(int argc, char** argv) {
  static int state = 77;
  Begin(&argc, &argv);
  if (!MpichDeviates("lets native be defined again")) {
    CHECK_CLASS(MPI_Register_datarep("native", NULL, NULL, Extent, &state), MPI_ERR_DUP_DATAREP);
  }
  CHECK_OK(MPI_Register_datarep("plain", NULL, NULL, Extent, &state));
  CHECK_CLASS(MPI_Register_datarep("plain", NULL, NULL, Extent, &state), MPI_ERR_DUP_DATAREP);
  CHECK_OK(MPI_Register_datarep_c("plain with large counts", MPI_CONVERSION_FN_NULL_C, MPI_CONVERSION_FN_NULL_C, Extent, &state));
  if (MpichDeviates("calls no conversion functions")) return End();
  CHECK_OK(MPI_Register_datarep("marked", Read, Write, Extent, &state));
  CHECK_OK(MPI_Register_datarep("vast", Fails, Fails, Vast, &state));
  CHECK_OK(MPI_Register_datarep("failing", Fails, Fails, Extent, &state));

  MPI_File file = OpenNew("datarep", MPI_MODE_RDWR | MPI_MODE_CREATE);
  MPI_Aint extent;
  MPI_Offset where;
  MPI_Status status;
  MPI_Datatype strided;
  int values[3] = {world_rank, 10 + world_rank, 20 + world_rank}, back[4] = {-1, -1, -1, -1};
  /* Extents scale: each rank has every world_size'th int. */
  MPI_Type_vector(1, 1, 1, MPI_INT, &strided);
  MPI_Datatype resized;
  MPI_Type_create_resized(strided, 0, 6 * world_size, &resized); /* in bytes of the file */
  MPI_Type_commit(&resized);
  CHECK_OK(MPI_File_set_view(file, 6 * world_rank, MPI_INT, resized, "marked", MPI_INFO_NULL));
  CHECK_OK(MPI_File_get_type_extent(file, MPI_INT, &extent));
  CHECK_EQ(extent, 6);
  CHECK_OK(MPI_File_write_all(file, values, 3, MPI_INT, &status));
  CHECK_EQ(BytesOf(&status), 12);
  CHECK_OK(MPI_File_get_byte_offset(file, 1, &where));
  CHECK_EQ(where, 6 * (world_rank + world_size));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_OK(MPI_File_get_size(file, &where));
  CHECK_EQ(where, 18 * world_size);
  CHECK_OK(MPI_File_read_at(file, 0, back, 4, MPI_INT, &status));
  CHECK_EQ(BytesOf(&status), 12);
  for (int i = 0; i < 3; i++) CHECK_EQ(back[i], values[i]);
  CHECK_EQ(back[3], -1);
  CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "failing", MPI_INFO_NULL));
  CHECK_CLASS(MPI_File_read_at(file, 0, back, 1, MPI_INT, &status), MPI_ERR_CONVERSION);
  /* Elements that are more in the file than there can be. */
  CHECK_OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "vast", MPI_INFO_NULL));
  CHECK_CLASS(MPI_File_read_at(file, 0, back, 1 << 24, MPI_BYTE, &status), MPI_ERR_COUNT);
  MPI_Type_free(&strided);
  MPI_Type_free(&resized);
  CloseAndDelete(&file);
  return End();
}
