/* lam_job PART...: what LAM/MPI 7.1.4 can do in an IMPI job, with nothing that MPI 1.2 does not have. Built with Weft's library and with LAM's; all clients of a
 * job run the same parts. Rank 0 prints "passed PART" when all ranks say so. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMost = 80000 };

static int rank, size, failures;

#define CHECK(condition)                                                          \
  do {                                                                            \
    if (!(condition) && ++failures <= 10) {                                       \
      printf("lam_job.c:%d: rank %d: not: %s\n", __LINE__, rank, #condition);     \
      fflush(stdout);                                                             \
    }                                                                             \
  } while (0)

static int Byte(int from, int i) { return (from * 31 + i * 7 + i / 256) & 0xff; }

static void Fill(unsigned char* bytes, int from, int n) {
  int i;
  for (i = 0; i < n; i++) bytes[i] = (unsigned char)Byte(from, i);
}

static int Differs(const unsigned char* bytes, int from, int n) {
  int i;
  for (i = 0; i < n; i++) {
    if (bytes[i] != (unsigned char)Byte(from, i)) return 1;
  }
  return 0;
}

/* `send` (MPI_Send, ...) from each rank to each other, one after the other. */
static void Messages(int (*send)(void*, int, MPI_Datatype, int, int, MPI_Comm), int ready) {
  static const int sizes[] = {0, 1, 3, 4, 1000, 1024, 4095, 65535, 65536, 65537, kMost};
  static unsigned char out[kMost], in[kMost];
  int from, to, i, bytes;
  MPI_Status status;
  MPI_Request request;
  for (from = 0; from < size; from++) {
    for (to = 0; to < size; to++) {
      for (i = 0; from != to && i < (int)(sizeof sizes / sizeof *sizes); i++) {
        if (rank == to) MPI_Irecv(in, kMost, MPI_BYTE, from, i, MPI_COMM_WORLD, &request);
        if (ready) MPI_Barrier(MPI_COMM_WORLD);
        if (rank == from) {
          Fill(out, from, sizes[i]);
          CHECK(send(out, sizes[i], MPI_BYTE, to, i, MPI_COMM_WORLD) == MPI_SUCCESS);
        }
        if (rank == to) {
          CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS);
          MPI_Get_count(&status, MPI_BYTE, &bytes);
          CHECK(bytes == sizes[i]);
          CHECK(status.MPI_SOURCE == from && status.MPI_TAG == i);
          CHECK(!Differs(in, from, sizes[i]));
        }
      }
    }
  }
}

static int Bsend(void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  static char attached[kMost + 4096];
  void* old;
  int bytes, code;
  MPI_Buffer_attach(attached, sizeof attached);
  code = MPI_Bsend(buffer, count, type, to, tag, comm);
  MPI_Buffer_detach(&old, &bytes);
  return code;
}
static int Send(void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) { return MPI_Send(buffer, count, type, to, tag, comm); }
static int Ssend(void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) { return MPI_Ssend(buffer, count, type, to, tag, comm); }
static int Rsend(void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) { return MPI_Rsend(buffer, count, type, to, tag, comm); }

/* In a ring, all at once. */
static void SendReceive(void) {
  static double out[1000], in[1000];
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int i;
  MPI_Status status;
  for (i = 0; i < 1000; i++) out[i] = rank + i * 0.25;
  CHECK(MPI_Sendrecv(out, 1000, MPI_DOUBLE, right, 3, in, 1000, MPI_DOUBLE, left, 3, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
  for (i = 0; i < 1000; i++) CHECK(in[i] == left + i * 0.25);
}

/* More than ackmark and hiwater, in both directions. */
static void Many(void) {
  enum { kTimes = 200 };
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int i, value;
  MPI_Request request;
  MPI_Status status;
  for (i = 0; i < kTimes; i++) {
    const int mine = rank * 1000 + i;
    MPI_Irecv(&value, 1, MPI_INT, left, 4, MPI_COMM_WORLD, &request);
    CHECK(MPI_Send((void*)&mine, 1, MPI_INT, right, 4, MPI_COMM_WORLD) == MPI_SUCCESS);
    MPI_Wait(&request, &status);
    CHECK(value == left * 1000 + i);
  }
}

static void Persistent(void) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int out, in, i;
  MPI_Request requests[2];
  MPI_Status statuses[2];
  MPI_Send_init(&out, 1, MPI_INT, right, 5, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(&in, 1, MPI_INT, left, 5, MPI_COMM_WORLD, &requests[1]);
  for (i = 0; i < 5; i++) {
    out = rank * 100 + i;
    MPI_Start(&requests[1]);
    MPI_Start(&requests[0]);
    MPI_Waitall(2, requests, statuses);
    CHECK(in == left * 100 + i);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

/* Types that have the same size in external32 as in memory, and others. */
static void Struct(void) {
  struct Mixed {
    char letter;
    short small;
    int number;
    double real;
    char name[5];
    float half;
  } out, in;
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int lengths[6] = {1, 1, 1, 1, 5, 1}, i;
  MPI_Aint places[6], start;
  MPI_Datatype types[6] = {MPI_CHAR, MPI_SHORT, MPI_INT, MPI_DOUBLE, MPI_CHAR, MPI_FLOAT}, mixed;
  MPI_Status status;
  memset(&out, 0, sizeof out);
  memset(&in, 0, sizeof in);
  out.letter = (char)('a' + rank);
  out.small = (short)(-2 - rank);
  out.number = 0x01020304 + rank;
  out.real = 1e100 + rank * 1e90;
  memcpy(out.name, "weft", 5);
  out.half = -0.5f * (float)rank;
  MPI_Address(&out, &start);
  MPI_Address(&out.letter, &places[0]);
  MPI_Address(&out.small, &places[1]);
  MPI_Address(&out.number, &places[2]);
  MPI_Address(&out.real, &places[3]);
  MPI_Address(out.name, &places[4]);
  MPI_Address(&out.half, &places[5]);
  for (i = 0; i < 6; i++) places[i] -= start;
  MPI_Type_struct(6, lengths, places, types, &mixed);
  MPI_Type_commit(&mixed);
  CHECK(MPI_Sendrecv(&out, 1, mixed, right, 6, &in, 1, mixed, left, 6, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
  CHECK(in.letter == 'a' + left && in.small == -2 - left && in.number == 0x01020304 + left);
  CHECK(in.real == 1e100 + left * 1e90 && in.half == -0.5f * (float)left && strcmp(in.name, "weft") == 0);
  MPI_Type_free(&mixed);
}

static void Probe(void) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int out[3], in[3], found = 0, count;
  MPI_Request request;
  MPI_Status status;
  out[0] = out[1] = out[2] = rank;
  MPI_Isend(out, 3, MPI_INT, right, 7, MPI_COMM_WORLD, &request);
  while (!found) MPI_Iprobe(left, 7, MPI_COMM_WORLD, &found, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(count == 3 && status.MPI_SOURCE == left && status.MPI_TAG == 7);
  MPI_Recv(in, 3, MPI_INT, left, 7, MPI_COMM_WORLD, &status);
  CHECK(in[0] == left && in[2] == left);
  MPI_Wait(&request, &status);
}

static void Barrier(void) {
  int i;
  for (i = 0; i < 20; i++) CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
}

/* `bytes` at most: LAM spoils what is longer than IMPI_C_DATALEN. */
static void Broadcast(int bytes) {
  static int numbers[65536 / 4];
  const int lengths[] = {1, 10, bytes / 4};
  int root, i, k;
  for (k = 0; k < 3; k++) {
    for (root = 0; root < size; root++) {
      for (i = 0; i < lengths[k]; i++) numbers[i] = rank == root ? root * 7 + i : -1;
      CHECK(MPI_Bcast(numbers, lengths[k], MPI_INT, root, MPI_COMM_WORLD) == MPI_SUCCESS);
      for (i = 0; i < lengths[k]; i++) CHECK(numbers[i] == root * 7 + i);
    }
  }
}

static void Reduce(void) {
  int root, i, out[100], in[100];
  for (root = 0; root < size; root++) {
    for (i = 0; i < 100; i++) out[i] = rank + i, in[i] = -1;
    CHECK(MPI_Reduce(out, in, 100, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD) == MPI_SUCCESS);
    for (i = 0; rank == root && i < 100; i++) CHECK(in[i] == size * i + size * (size - 1) / 2);
    CHECK(MPI_Reduce(out, in, 100, MPI_INT, MPI_MAX, root, MPI_COMM_WORLD) == MPI_SUCCESS);
    for (i = 0; rank == root && i < 100; i++) CHECK(in[i] == size - 1 + i);
  }
}

static void AllReduce(void) {
  double out = rank + 0.5, in = 0;
  int i;
  for (i = 0; i < 5; i++) {
    CHECK(MPI_Allreduce(&out, &in, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(in == size * (size - 1) / 2.0 + 0.5 * size);
  }
}

static int Run(const char* part) {
  if (strcmp(part, "send") == 0) Messages(Send, 0);
  else if (strcmp(part, "bsend") == 0) Messages(Bsend, 0);
  else if (strcmp(part, "ssend") == 0) Messages(Ssend, 0);
  else if (strcmp(part, "rsend") == 0) Messages(Rsend, 1);
  else if (strcmp(part, "sendrecv") == 0) SendReceive();
  else if (strcmp(part, "many") == 0) Many();
  else if (strcmp(part, "persistent") == 0) Persistent();
  else if (strcmp(part, "struct") == 0) Struct();
  else if (strcmp(part, "probe") == 0) Probe();
  else if (strcmp(part, "barrier") == 0) Barrier();
  else if (strncmp(part, "bcast", 5) == 0) Broadcast(atoi(part + 5));
  else if (strcmp(part, "reduce") == 0) Reduce();
  else if (strcmp(part, "allreduce") == 0) AllReduce();
  else return 0;
  return 1;
}

int main(int argc, char** argv) {
  int i, all;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (i = 1; i < argc; i++) {
    failures = 0;
    CHECK(Run(argv[i]));
    all = failures;
    if (size > 1) MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && all == 0) {
      printf("passed %s\n", argv[i]);
      fflush(stdout);
    }
  }
  MPI_Finalize();
  if (rank == 0) printf("finalized\n");
  return 0;
}
