/* Wrong arguments of communication and object functions get the error class of the standard. */
#include "tests/mpi/check.h"

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Comm world = MPI_COMM_WORLD, null = MPI_COMM_NULL, comm;
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  int buffer[4] = {0}, n, flag;
  MPI_Request request;
  MPI_Status status;
  MPI_Datatype type;

  CHECK_CLASS(MPI_Send(buffer, -1, MPI_INT, 0, 0, world), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Send(buffer, 1, MPI_INT, -5, 0, world), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Send(buffer, 1, MPI_INT, world_size, 0, world), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Send(buffer, 1, MPI_INT, MPI_ANY_SOURCE, 0, world), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Send(buffer, 1, MPI_INT, 0, -1, world), MPI_ERR_TAG);
  CHECK_CLASS(MPI_Send(buffer, 1, MPI_INT, 0, 0x7fffffff, world), MPI_ERR_TAG);
  CHECK_CLASS(MPI_Send(buffer, 1, MPI_DATATYPE_NULL, 0, 0, world), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Send(buffer, 1, MPI_INT, 0, 0, null), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Send(NULL, 1, MPI_INT, 0, 0, world), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Recv(buffer, 1, MPI_INT, world_size, 0, world, &status), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Recv(buffer, 1, MPI_INT, 0, -9, world, &status), MPI_ERR_TAG);
  CHECK_CLASS(MPI_Irecv(buffer, -3, MPI_INT, 0, 0, world, &request), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Probe(world_size, 0, world, &status), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Bsend(buffer, 4, MPI_INT, 0, 0, world), MPI_ERR_BUFFER);  /* none attached */
  MPI_Type_contiguous(2, MPI_INT, &type);
  CHECK_CLASS(MPI_Send(buffer, 1, type, 0, 0, world), MPI_ERR_TYPE);  /* not committed */
  MPI_Type_commit(&type);
  MPI_Datatype freed = type;
  MPI_Type_free(&type);
  if (!MpichDeviates("freed handles are not found out")) CHECK_CLASS(MPI_Type_commit(&freed), MPI_ERR_TYPE);

  if (!MpichDeviates("the product of count and size may overflow")) {
    CHECK_CLASS(MPI_Send_c(buffer, (MPI_Count)1 << 62, MPI_INT, 0, 0, world), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Irecv_c(buffer, (MPI_Count)1 << 61, MPI_DOUBLE, 0, 0, world, &request), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Bcast_c(buffer, (MPI_Count)1 << 53, MPI_BYTE, 0, world), MPI_ERR_COUNT);
  }
  CHECK_CLASS(MPI_Bcast(buffer, 1, MPI_INT, world_size, world), MPI_ERR_ROOT);
  CHECK_CLASS(MPI_Bcast(buffer, -1, MPI_INT, 0, world), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Bcast(buffer, 1, MPI_INT, 0, null), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Reduce(buffer, buffer + 1, 1, MPI_INT, MPI_OP_NULL, 0, world), MPI_ERR_OP);
  CHECK_CLASS(MPI_Reduce(buffer, buffer + 1, 1, MPI_INT, MPI_SUM, -4, world), MPI_ERR_ROOT);
  CHECK_CLASS(MPI_Allreduce(buffer, buffer + 1, 1, MPI_DOUBLE, MPI_BAND, world), MPI_ERR_OP);
  CHECK_CLASS(MPI_Allreduce(buffer, buffer + 1, 1, MPI_DATATYPE_NULL, MPI_SUM, world),
              MpichDeviates("blames the operation") ? MPI_ERR_OP : MPI_ERR_TYPE);
  if (!MpichDeviates("aliased buffers of one rank are found late"))
    CHECK_CLASS(MPI_Allreduce(buffer, buffer, 1, MPI_INT, MPI_SUM, world), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Exscan(buffer, buffer, 1, MPI_INT, MPI_SUM, world), MPI_ERR_BUFFER);  /* at rank 0, too */
  CHECK_CLASS(MPI_Iexscan(buffer, buffer, 1, MPI_INT, MPI_SUM, world, &request), MPI_ERR_BUFFER);

  CHECK_CLASS(MPI_Type_contiguous(-1, MPI_INT, &type), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Type_vector(1, -1, 1, MPI_INT, &type), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type), MPI_ERR_TYPE);
  type = MPI_INT;
  CHECK_CLASS(MPI_Type_free(&type), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Type_get_contents(MPI_INT, 1, 1, 1, &n, (MPI_Aint*)buffer, &type), MPI_ERR_TYPE);
  int position = 0;
  char small[2];
  if (!MpichDeviates("MPI_Pack fills what room there is")) CHECK(MPI_Pack(buffer, 1, MPI_INT, small, sizeof small, &position, world) != MPI_SUCCESS);

  CHECK_CLASS(MPI_Comm_rank(null, &n), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Comm_size((MPI_Comm)0x12345, &n), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Comm_size(world, NULL), MPI_ERR_ARG);
  const int lenient = MpichDeviates("takes the remote size of an intracommunicator and groups with a rank twice");
  CHECK_CLASS(MPI_Comm_remote_size(world, &n), lenient ? MPI_SUCCESS : MPI_ERR_COMM);
  MPI_Comm predefined = world;
  CHECK_CLASS(MPI_Comm_free(&predefined), MPI_ERR_COMM);
  MPI_Group group, other;
  MPI_Comm_group(world, &group);
  CHECK_CLASS(MPI_Group_incl(group, 1, (int[]){world_size}, &other), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Group_incl(group, 2, (int[]){0, 0}, &other), lenient ? MPI_SUCCESS : MPI_ERR_RANK);
  CHECK_CLASS(MPI_Group_size(MPI_GROUP_NULL, &n), MPI_ERR_GROUP);
  MPI_Group_free(&group);
  CHECK_CLASS(MPI_Cart_create(world, 1, (int[]){world_size + 1}, (int[]){0}, 0, &comm), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Cartdim_get(world, &n), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Dims_create(7, 2, (int[]){2, 0}), MPI_ERR_DIMS);

  request = (MPI_Request)0x12345678;
  CHECK_CLASS(MPI_Wait(&request, &status), MPI_ERR_REQUEST);
  request = MPI_REQUEST_NULL;
  CHECK_CLASS(MPI_Start(&request), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Cancel(&request), MPI_ERR_REQUEST);
  CHECK_CLASS(MPI_Request_free(&request), MPI_ERR_REQUEST);
  MPI_Op op = MPI_SUM;
  CHECK_CLASS(MPI_Op_free(&op), MPI_ERR_OP);
  int key = MPI_KEYVAL_INVALID;
  CHECK_CLASS(MPI_Comm_set_attr(world, key, NULL), MPI_ERR_KEYVAL);
  CHECK_CLASS(MPI_Comm_get_attr(world, key, &n, &flag), MPI_ERR_KEYVAL);
  CHECK_CLASS(MPI_Comm_free_keyval(&key), MPI_ERR_KEYVAL);
  /* The library works after all that. */
  int sum = 0, one = 1;
  CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, world));
  CHECK_EQ(sum, world_size);
  return End();
}
