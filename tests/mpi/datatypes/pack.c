/* MPI_Pack and MPI_Unpack (MPI 4.0 section 5.2), MPI_PACKED messages, external32 (5.3). */
#include "tests/mpi/check.h"

static void PackedMessage(void) {
  char buffer[1000];
  int position = 0, n = 3, m = 0, most;
  double x[3] = {1.5, -2.5, 1e300}, y[3] = {0, 0, 0};
  char text[8] = "hello", read[8] = "";
  MPI_Pack_size(3, MPI_DOUBLE, MPI_COMM_WORLD, &most);
  CHECK(most >= 24);
  MPI_Pack(&n, 1, MPI_INT, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
  MPI_Pack(x, n, MPI_DOUBLE, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
  MPI_Pack(text, 6, MPI_CHAR, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
  MPI_Request request;
  MPI_Status status;
  MPI_Isend(buffer, position, MPI_PACKED, Right(), 1, MPI_COMM_WORLD, &request);
  char in[1000];
  int bytes;
  MPI_Recv(in, sizeof in, MPI_PACKED, Left(), 1, MPI_COMM_WORLD, &status);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Get_count(&status, MPI_PACKED, &bytes);
  CHECK_EQ(bytes, position);
  position = 0;
  MPI_Unpack(in, bytes, &position, &m, 1, MPI_INT, MPI_COMM_WORLD);
  CHECK_EQ(m, 3);
  MPI_Unpack(in, bytes, &position, y, m, MPI_DOUBLE, MPI_COMM_WORLD);
  for (int i = 0; i < 3; i++) CHECK(x[i] == y[i]);
  MPI_Unpack(in, bytes, &position, read, 6, MPI_CHAR, MPI_COMM_WORLD);
  CHECK_STR(read, "hello");
  CHECK_EQ(position, bytes);
  /* What was packed may be received as plain data, and the other way round. */
  position = 0;
  MPI_Pack(x, 3, MPI_DOUBLE, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
  MPI_Sendrecv(buffer, position, MPI_PACKED, Right(), 2, y, 3, MPI_DOUBLE, Left(), 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < 3; i++) CHECK(x[i] == y[i]);
}

/* A strided type packed in pieces and unpacked in one. */
static void DerivedInPieces(void) {
  MPI_Datatype type;
  int from[60], into[60], position = 0;
  char buffer[400];
  MPI_Type_vector(5, 2, 6, MPI_INT, &type);
  MPI_Type_commit(&type);
  for (int i = 0; i < 60; i++) from[i] = i, into[i] = -1;
  MPI_Pack(from, 1, type, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
  MPI_Pack(from + 30, 1, type, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
  CHECK_EQ(position, 80);
  MPI_Datatype both;
  MPI_Type_create_resized(type, 0, 30 * sizeof(int), &both);
  MPI_Type_commit(&both);
  position = 0;
  MPI_Unpack(buffer, 80, &position, into, 2, both, MPI_COMM_WORLD);
  for (int i = 0; i < 60; i++) CHECK_EQ(into[i], i % 6 < 2 ? i : -1);
  MPI_Type_free(&type);
  MPI_Type_free(&both);
}

static void External32(void) {
  MPI_Aint size, position = 0;
  unsigned char buffer[100];
  int n = 0x01020304, m = 0;
  short h = 0x0506, k = 0;
  double d = 1.0, e = 0;
  long l = -2, q = 0;
  MPI_Pack_external_size("external32", 1, MPI_INT, &size);
  CHECK_EQ(size, 4);
  MPI_Pack_external_size("external32", 3, MPI_DOUBLE, &size);
  CHECK_EQ(size, 24);
  MPI_Pack_external("external32", &n, 1, MPI_INT, buffer, sizeof buffer, &position);
  MPI_Pack_external("external32", &h, 1, MPI_SHORT, buffer, sizeof buffer, &position);
  MPI_Pack_external("external32", &d, 1, MPI_DOUBLE, buffer, sizeof buffer, &position);
  CHECK_EQ(position, 14);
  static const unsigned char wanted[14] = {1, 2, 3, 4, 5, 6, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0};
  for (int i = 0; i < 14; i++) CHECK_EQ(buffer[i], wanted[i]);
  /* A C long has 8 bytes in external32 as of MPI 3.1 (4 before). */
  const MPI_Aint before = position;
  MPI_Pack_external("external32", &l, 1, MPI_LONG, buffer, sizeof buffer, &position);
  CHECK(position - before == 8 || position - before == 4);
  const MPI_Aint bytes = position;
  position = 0;
  MPI_Unpack_external("external32", buffer, bytes, &position, &m, 1, MPI_INT);
  MPI_Unpack_external("external32", buffer, bytes, &position, &k, 1, MPI_SHORT);
  MPI_Unpack_external("external32", buffer, bytes, &position, &e, 1, MPI_DOUBLE);
  MPI_Unpack_external("external32", buffer, bytes, &position, &q, 1, MPI_LONG);
  CHECK_EQ(m, n);
  CHECK_EQ(k, h);
  CHECK(e == 1.0);
  CHECK_EQ(q, -2);
  CHECK_EQ(position, bytes);
  /* A struct with gaps. */
  struct {
    char c;
    int i[2];
  } s = {'x', {7, 8}}, t = {0, {0, 0}};
  MPI_Datatype type;
  MPI_Type_create_struct(2, (int[]){1, 2}, (MPI_Aint[]){0, 4}, (MPI_Datatype[]){MPI_CHAR, MPI_INT}, &type);
  MPI_Type_commit(&type);
  position = 0;
  MPI_Pack_external("external32", &s, 1, type, buffer, sizeof buffer, &position);
  CHECK_EQ(position, 9);
  CHECK_EQ(buffer[0], 'x');
  CHECK_EQ(buffer[4], 7);
  position = 0;
  MPI_Unpack_external("external32", buffer, 9, &position, &t, 1, type);
  CHECK(t.c == 'x' && t.i[0] == 7 && t.i[1] == 8);
  MPI_Type_free(&type);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  PackedMessage();
  DerivedInPieces();
  if (!MpichDeviates("MPI_Pack_external ends with an illegal instruction")) External32();
  return End();
}
