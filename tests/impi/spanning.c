/* What is particular in a job of several clients (IMPI 0.0): colours, data in external32, and what is not carried between clients. At least two clients. */
#include "tests/mpi/check.h"

#include <stddef.h>

static int Attribute(MPI_Comm comm, int keyval) {
  int *value = NULL, found = 0;
  CHECK_OK(MPI_Comm_get_attr(comm, keyval, &value, &found));
  CHECK(found);
  return found ? *value : -1;
}

static int SizeOf(MPI_Comm comm) {
  int size;
  MPI_Comm_size(comm, &size);
  return size;
}

/* Of one client. */
static MPI_Comm Client(void) {
  MPI_Comm client;
  MPI_Comm_split(MPI_COMM_WORLD, Attribute(MPI_COMM_WORLD, IMPI_CLIENT_COLOR), 0, &client);
  return client;
}

static void ColoursDivideTheWorldIntoClientsAndHosts(void) {
  const int size_keys[] = {IMPI_CLIENT_SIZE, IMPI_HOST_SIZE}, color_keys[] = {IMPI_CLIENT_COLOR, IMPI_HOST_COLOR};
  for (int i = 0; i < 2; i++) {
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, Attribute(MPI_COMM_WORLD, color_keys[i]), 0, &part);
    CHECK(Attribute(MPI_COMM_WORLD, size_keys[i]) >= 2);
    CHECK(SizeOf(part) < world_size);
    CHECK_EQ(Attribute(part, size_keys[i]), 1);
    const int color = Attribute(part, color_keys[i]);
    int highest;
    MPI_Allreduce(&color, &highest, 1, MPI_INT, MPI_MAX, part);
    CHECK_EQ(color, highest);
    MPI_Comm_free(&part);
  }
  CHECK_EQ(Attribute(MPI_COMM_SELF, IMPI_CLIENT_SIZE), 1);
  /* A value stays where it was when another communicator is asked. */
  int *world = NULL, *self = NULL, found;
  MPI_Comm_get_attr(MPI_COMM_WORLD, IMPI_CLIENT_SIZE, &world, &found);
  const int before = *world;
  MPI_Comm_get_attr(MPI_COMM_SELF, IMPI_CLIENT_SIZE, &self, &found);
  CHECK_EQ(*world, before);
}

/* A client has one host or more. Those of other clients are told apart even if they are on one machine. */
static void TheWorldHasAllHosts(void) {
  const char* hosts = getenv("HOSTS_OF_JOB");
  if (hosts != NULL) CHECK_EQ(Attribute(MPI_COMM_WORLD, IMPI_HOST_SIZE), atoi(hosts));
  CHECK(Attribute(MPI_COMM_WORLD, IMPI_HOST_SIZE) >= Attribute(MPI_COMM_WORLD, IMPI_CLIENT_SIZE));
  /* Ranks ascend by clients, and within a client by hosts. */
  const int mine[] = {Attribute(MPI_COMM_WORLD, IMPI_CLIENT_COLOR), Attribute(MPI_COMM_WORLD, IMPI_HOST_COLOR)};
  int left[] = {0, 0};
  MPI_Sendrecv(mine, 2, MPI_INT, Right(), 6, left, 2, MPI_INT, Left(), 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (world_rank > 0) CHECK(left[0] <= mine[0] && left[1] <= mine[1] && mine[1] <= left[1] + 1);
}

/* A sum within the clients, and one of the masters between them. */
static void ATwoLevelSumIsTheSumOfAll(void) {
  MPI_Comm client = Client(), masters;
  int rank, sum = 0, all = 0, expected;
  MPI_Comm_rank(client, &rank);
  MPI_Allreduce(&world_rank, &sum, 1, MPI_INT, MPI_SUM, client);
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? 0 : MPI_UNDEFINED, 0, &masters);
  if (masters != MPI_COMM_NULL) {
    CHECK(SizeOf(masters) >= 2);
    MPI_Allreduce(&sum, &all, 1, MPI_INT, MPI_SUM, masters);
    MPI_Comm_free(&masters);
  }
  MPI_Bcast(&all, 1, MPI_INT, 0, client);
  MPI_Allreduce(&world_rank, &expected, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK_EQ(all, expected);
  MPI_Comm_free(&client);
}

struct Mixed {
  char c;
  long l;
  double d;
  short s;
};

static MPI_Datatype MixedType(void) {
  const int ones[] = {1, 1, 1, 1};
  const MPI_Aint at[] = {offsetof(struct Mixed, c), offsetof(struct Mixed, l), offsetof(struct Mixed, d), offsetof(struct Mixed, s)};
  const MPI_Datatype types[] = {MPI_CHAR, MPI_LONG, MPI_DOUBLE, MPI_SHORT};
  MPI_Datatype fields, type;
  MPI_Type_create_struct(4, ones, at, types, &fields);
  MPI_Type_create_resized(fields, 0, sizeof(struct Mixed), &type);
  MPI_Type_free(&fields);
  MPI_Type_commit(&type);
  return type;
}

/* From each to each, so that some go between clients, where MPI_LONG has 4 bytes. */
static void TypesKeepTheirValues(void) {
  MPI_Datatype type = MixedType();
  for (int count = 1; count <= 20000; count = count * 10 + 1) {
    struct Mixed* out = calloc((size_t)count, sizeof *out);
    struct Mixed* in = calloc((size_t)count + 1, sizeof *in);
    for (int i = 0; i < count; i++) out[i] = (struct Mixed){(char)i, -i - world_rank, i / 3.0, (short)(i * 7)};
    for (int step = 1; step < world_size; step++) {
      const int to = (world_rank + step) % world_size, from = (world_rank + world_size - step) % world_size;
      MPI_Request send;
      MPI_Status status;
      int seen;
      MPI_Isend(out, count, type, to, 5, MPI_COMM_WORLD, &send);
      MPI_Probe(from, 5, MPI_COMM_WORLD, &status);
      CHECK_STATUS(status, from, 5, type, count);
      MPI_Get_elements(&status, type, &seen);
      CHECK_EQ(seen, 4 * count);
      MPI_Recv(in, count + 1, type, from, 5, MPI_COMM_WORLD, &status);
      CHECK_STATUS(status, from, 5, type, count);
      MPI_Wait(&send, MPI_STATUS_IGNORE);
      int wrong = 0;
      for (int i = 0; i < count; i++) wrong += in[i].c != (char)i || in[i].l != -i - from || in[i].d != i / 3.0 || in[i].s != (short)(i * 7);
      CHECK_EQ(wrong, 0);
    }
    free(out);
    free(in);
  }
  MPI_Type_free(&type);
}

static void BufferedAndPackedDataAreConvertedToo(void) {
  long out[3] = {1, -2, world_rank}, in[3];
  static char buffer[10000], packed[100];
  int size, position = 0;
  MPI_Status status;
  MPI_Buffer_attach(buffer, sizeof buffer);
  MPI_Bsend(out, 3, MPI_LONG, Right(), 1, MPI_COMM_WORLD);
  MPI_Recv(in, 3, MPI_LONG, Left(), 1, MPI_COMM_WORLD, &status);
  CHECK(in[0] == 1 && in[1] == -2 && in[2] == Left());
  CHECK_STATUS(status, Left(), 1, MPI_LONG, 3);
  void* detached;
  MPI_Buffer_detach(&detached, &size);
  MPI_Pack_size(3, MPI_LONG, MPI_COMM_WORLD, &size);
  CHECK_EQ(size, 12);
  MPI_Pack(out, 3, MPI_LONG, packed, sizeof packed, &position, MPI_COMM_WORLD);
  CHECK_EQ(position, 12);
  MPI_Sendrecv_replace(packed, position, MPI_PACKED, Right(), 2, Left(), 2, MPI_COMM_WORLD, &status);
  position = 0;
  MPI_Unpack(packed, sizeof packed, &position, in, 3, MPI_LONG, MPI_COMM_WORLD);
  CHECK(in[0] == 1 && in[1] == -2 && in[2] == Left());
  long one = world_rank;
  MPI_Sendrecv_replace(&one, 1, MPI_LONG, Right(), 3, Left(), 3, MPI_COMM_WORLD, &status);
  CHECK_EQ(one, Left());
}

/* Whichever call sends it, also to a rank of the own client and to this rank (MPI 4.0 section 5.2). */
static void WhatIsPackedIsReceivedAsWhatItWas(void) {
  enum { kMany = 20000 }; /* long messages, too */
  static char buffer[kMany * 8 + 10000], packed[kMany * 8];
  static double out[kMany], in[kMany];
  for (int i = 0; i < kMany; i++) out[i] = world_rank + i * 0.5;
  for (int count = 3; count <= kMany; count += kMany - 3) {
    for (int call = 0; call < 5; call++) {
      for (int distance = 0; distance < 3; distance++) {
        const int to = (world_rank + distance) % world_size, from = (world_rank + 2 * world_size - distance) % world_size;
        int position = 0, size;
        void* detached;
        MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        MPI_Status statuses[2];
        MPI_Pack(out, count, MPI_DOUBLE, packed, sizeof packed, &position, MPI_COMM_WORLD);
        CHECK_EQ(position, count * 8);
        memset(in, 0, sizeof in);
        MPI_Irecv(in, count, MPI_DOUBLE, from, 5, MPI_COMM_WORLD, &requests[0]);
        switch (call) {
          case 0: MPI_Isend(packed, position, MPI_PACKED, to, 5, MPI_COMM_WORLD, &requests[1]); break;
          case 1: MPI_Issend(packed, position, MPI_PACKED, to, 5, MPI_COMM_WORLD, &requests[1]); break;
          case 2:
            MPI_Send_init(packed, position, MPI_PACKED, to, 5, MPI_COMM_WORLD, &requests[1]);
            MPI_Start(&requests[1]);
            break;
          case 3: MPI_Isendrecv_replace(packed, position, MPI_PACKED, to, 5, MPI_PROC_NULL, 5, MPI_COMM_WORLD, &requests[1]); break;
          default:
            MPI_Buffer_attach(buffer, sizeof buffer);
            MPI_Bsend(packed, position, MPI_PACKED, to, 5, MPI_COMM_WORLD);
            MPI_Buffer_detach(&detached, &size);
        }
        MPI_Waitall(2, requests, statuses);
        if (call == 2) MPI_Request_free(&requests[1]);
        CHECK_STATUS(statuses[0], from, 5, MPI_DOUBLE, count);
        for (int i = 0; i < count; i++) CHECK_EQ(in[i] == from + i * 0.5, 1);
        MPI_Barrier(MPI_COMM_WORLD);
      }
    }
  }
}

static void ATagAboveTheBoundIsAnError(void) {
  const int bound = Attribute(MPI_COMM_WORLD, MPI_TAG_UB);
  CHECK(bound >= 32767);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (bound < 0x3fffffff && SizeOf(MPI_COMM_WORLD) > 1) {
    const int far = world_rank == 0 ? world_size - 1 : 0; /* of another client, for those two */
    if (world_rank == 0 || world_rank == world_size - 1) CHECK_CLASS(MPI_Send(NULL, 0, MPI_BYTE, far, bound + 1, MPI_COMM_WORLD), MPI_ERR_TAG);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void WhatImpiDoesNotCarryWorksWithinAClientOnly(void) {
  MPI_Win window;
  MPI_File file;
  MPI_Comm made;
  MPI_Request request;
  int *base, flag = 1;
  MPI_Group group;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_CLASS(MPI_Win_allocate(4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window), MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK_CLASS(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window), MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK_CLASS(MPI_File_open(MPI_COMM_WORLD, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK_CLASS(MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &made, MPI_ERRCODES_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK_CLASS(MPI_Comm_idup(MPI_COMM_WORLD, &made, &request), MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK_CLASS(MPI_Psend_init(&flag, 1, 1, MPI_INT, Right(), 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request), MPI_ERR_UNSUPPORTED_OPERATION);
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  CHECK_CLASS(MPI_Comm_create_group(MPI_COMM_WORLD, group, 1, &made), MPI_ERR_UNSUPPORTED_OPERATION);
  MPI_Group_free(&group);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);

  MPI_Comm client = Client();
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, client, &base, &window);
  int rank, size;
  MPI_Comm_rank(client, &rank);
  MPI_Comm_size(client, &size);
  *base = -1;
  MPI_Win_fence(0, window);
  MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  CHECK_EQ(*base, (rank + size - 1) % size);
  MPI_Win_free(&window);
  MPI_Comm_idup(client, &made, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK_EQ(SizeOf(made), size);
  MPI_Comm_free(&made);
  MPI_Comm_free(&client);
}

static void IntercommunicatorsOfClientsCarryMessagesAndMerge(void) {
  MPI_Comm client = Client(), inter, copy, both;
  const int color = Attribute(MPI_COMM_WORLD, IMPI_CLIENT_COLOR);
  int first, is_first, rank, remote;
  MPI_Allreduce(&color, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  is_first = color == first;
  /* The leaders: world rank 0, and the lowest rank of any other client. With more than two clients, the others form one group. */
  MPI_Comm side;
  MPI_Comm_split(MPI_COMM_WORLD, is_first, 0, &side);
  int other = is_first ? world_size : world_rank, lowest;
  MPI_Allreduce(&other, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, is_first ? lowest : 0, 99, &inter);
  MPI_Comm_rank(inter, &rank);
  MPI_Comm_remote_size(inter, &remote);
  CHECK_EQ(SizeOf(inter) + remote, world_size);
  MPI_Comm_dup(inter, &copy);
  if (rank < remote && rank < SizeOf(inter)) {
    long out = world_rank, in = -1;
    MPI_Sendrecv(&out, 1, MPI_LONG, rank, 4, &in, 1, MPI_LONG, rank, 4, copy, MPI_STATUS_IGNORE);
    CHECK_EQ(in, is_first ? lowest + rank : rank);
  }
  for (int high = 0; high < 2; high++) {
    int sum = 0, merged;
    MPI_Intercomm_merge(high ? copy : inter, high ? is_first : 0, &both);
    MPI_Comm_rank(both, &merged);
    const int firsts = is_first ? SizeOf(side) : remote, others = world_size - firsts;
    CHECK_EQ(merged, high ? (is_first ? others + rank : rank) : (is_first ? rank : firsts + rank));
    MPI_Allreduce(&world_rank, &sum, 1, MPI_INT, MPI_SUM, both);
    CHECK_EQ(sum, world_size * (world_size - 1) / 2);
    MPI_Comm_free(&both);
  }
  MPI_Comm_free(&copy);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&side);
  MPI_Comm_free(&client);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  ColoursDivideTheWorldIntoClientsAndHosts();
  TheWorldHasAllHosts();
  ATwoLevelSumIsTheSumOfAll();
  TypesKeepTheirValues();
  BufferedAndPackedDataAreConvertedToo();
  WhatIsPackedIsReceivedAsWhatItWas();
  ATagAboveTheBoundIsAnError();
  WhatImpiDoesNotCarryWorksWithinAClientOnly();
  IntercommunicatorsOfClientsCarryMessagesAndMerge();
  return End();
}
