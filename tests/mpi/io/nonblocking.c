/* Data access in the background, alone and together, and split collective calls (MPI 4.0 sections 14.4.2 to 14.4.5). */
#include "io.h"

enum { kInts = 1000, kRequests = 8 };

static int out[kRequests][kInts], back[kRequests][kInts];

static void Fill(int round) {
  for (int r = 0; r < kRequests; r++)
    for (int i = 0; i < kInts; i++) out[r][i] = ((round * kRequests + r) * 8 + world_rank) * kInts + i;
  memset(back, -1, sizeof back);
}

static void CheckBack(void) { CHECK_EQ(memcmp(out, back, sizeof out), 0); }

static void CheckStatuses(MPI_Status* statuses) {
  for (int r = 0; r < kRequests; r++) CHECK_EQ(BytesOf(&statuses[r]), kInts * 4);
}

static void TransfersAlone(void) {
  MPI_File file = OpenNew("nonblocking", MPI_MODE_RDWR | MPI_MODE_CREATE);
  MPI_Request requests[kRequests];
  MPI_Status statuses[kRequests];
  CHECK_OK(MPI_File_set_view(file, (MPI_Offset)world_rank * sizeof out, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  Fill(0);
  for (int r = 0; r < kRequests; r++) CHECK_OK(MPI_File_iwrite_at(file, r * kInts, out[r], kInts, MPI_INT, &requests[r]));
  CHECK_OK(MPI_Waitall(kRequests, requests, statuses));
  CheckStatuses(statuses);
  for (int r = 0; r < kRequests; r++) CHECK_OK(MPI_File_iread(file, back[r], kInts, MPI_INT, &requests[r]));
  CHECK_OK(MPI_Waitall(kRequests, requests, statuses));
  CheckStatuses(statuses);
  CheckBack();
  Fill(1);
  CHECK_OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
  for (int r = 0; r < kRequests; r++) CHECK_OK(MPI_File_iwrite(file, out[r], kInts, MPI_INT, &requests[r]));
  for (int done = 0, flag; done < kRequests;) {
    int index;
    CHECK_OK(MPI_Testany(kRequests, requests, &index, &flag, statuses));
    if (flag) done++;
  }
  for (int r = 0; r < kRequests; r++) CHECK_OK(MPI_File_iread_at(file, r * kInts, back[r], kInts, MPI_INT, &requests[r]));
  CHECK_OK(MPI_Waitall(kRequests, requests, statuses));
  CheckBack();
  /* Beyond the end there is nothing. */
  CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
  CHECK_OK(MPI_File_iread_at(file, (MPI_Offset)world_size * kRequests * kInts, back[0], kInts, MPI_INT, &requests[0]));
  CHECK_OK(MPI_Wait(&requests[0], &statuses[0]));
  CHECK_EQ(BytesOf(&statuses[0]), 0);
  CloseAndDelete(&file);
}

static void TransfersByTheSharedPointer(void) {
  MPI_File file = OpenNew("ishared", MPI_MODE_RDWR | MPI_MODE_CREATE);
  MPI_Request requests[kRequests];
  MPI_Offset where;
  static int all[8 * kRequests * kInts];
  int seen[8 * kRequests] = {0};
  MPI_Status status;
  CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  for (int r = 0; r < kRequests; r++)
    for (int i = 0; i < kInts; i++) out[r][i] = world_rank * kRequests + r;
  for (int r = 0; r < kRequests; r++) CHECK_OK(MPI_File_iwrite_shared(file, out[r], kInts, MPI_INT, &requests[r]));
  CHECK_OK(MPI_Waitall(kRequests, requests, MPI_STATUSES_IGNORE));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_OK(MPI_File_get_position_shared(file, &where));
  CHECK_EQ(where, world_size * kRequests * kInts);
  CHECK_OK(MPI_File_read_at(file, 0, all, world_size * kRequests * kInts, MPI_INT, &status));
  for (int r = 0; r < world_size * kRequests; r++) {
    CHECK(all[r * kInts] >= 0 && all[r * kInts] < world_size * kRequests);
    seen[all[r * kInts]]++;
    for (int i = 1; i < kInts; i++) CHECK_EQ(all[r * kInts + i], all[r * kInts]);
  }
  for (int r = 0; r < world_size * kRequests; r++) CHECK_EQ(seen[r], 1);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  CHECK_OK(MPI_File_iread_shared(file, back[0], kInts, MPI_INT, &requests[0]));
  CHECK_OK(MPI_Wait(&requests[0], &status));
  CHECK_EQ(BytesOf(&status), kInts * 4);
  CloseAndDelete(&file);
}

static void TransfersTogether(void) {
  MPI_File file = OpenNew("iall", MPI_MODE_RDWR | MPI_MODE_CREATE);
  MPI_Request requests[kRequests];
  MPI_Status statuses[kRequests];
  MPI_Datatype strided;
  int sum = 0, one = 1;
  MPI_Type_create_resized(MPI_INT, 0, 4 * world_size, &strided);
  MPI_Type_commit(&strided);
  CHECK_OK(MPI_File_set_view(file, 4 * world_rank, MPI_INT, strided, "native", MPI_INFO_NULL));
  Fill(2);
  for (int r = 0; r < kRequests; r++) CHECK_OK(MPI_File_iwrite_all(file, out[r], kInts, MPI_INT, &requests[r]));
  /* Other collectives meanwhile. */
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK_EQ(sum, world_size);
  CHECK_OK(MPI_Waitall(kRequests, requests, statuses));
  CheckStatuses(statuses);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int r = 0; r < kRequests; r++) CHECK_OK(MPI_File_iread_at_all(file, r * kInts, back[r], kInts, MPI_INT, &requests[r]));
  CHECK_OK(MPI_Waitall(kRequests, requests, statuses));
  CheckBack();
  Fill(3);
  for (int r = 0; r < kRequests; r++) CHECK_OK(MPI_File_iwrite_at_all(file, r * kInts, out[r], kInts, MPI_INT, &requests[r]));
  CHECK_OK(MPI_Waitall(kRequests, requests, MPI_STATUSES_IGNORE));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
  for (int r = 0; r < kRequests; r++) CHECK_OK(MPI_File_iread_all(file, back[r], kInts, MPI_INT, &requests[r]));
  CHECK_OK(MPI_Waitall(kRequests, requests, statuses));
  CheckBack();
  MPI_Type_free(&strided);
  CloseAndDelete(&file);
}

static void BeginsAndEnds(void) {
  MPI_File file = OpenNew("split", MPI_MODE_RDWR | MPI_MODE_CREATE);
  MPI_Status status;
  CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  Fill(4);
  CHECK_OK(MPI_File_write_at_all_begin(file, world_rank * kInts, out[0], kInts, MPI_INT));
  CHECK_OK(MPI_File_write_at_all_end(file, out[0], &status));
  CHECK_EQ(BytesOf(&status), kInts * 4);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_OK(MPI_File_read_at_all_begin(file, world_rank * kInts, back[0], kInts, MPI_INT));
  CHECK_OK(MPI_File_read_at_all_end(file, back[0], &status));
  CHECK_EQ(memcmp(back[0], out[0], sizeof out[0]), 0);
  CHECK_OK(MPI_File_seek(file, (world_size + world_rank) * kInts, MPI_SEEK_SET));
  CHECK_OK(MPI_File_write_all_begin(file, out[1], kInts, MPI_INT));
  CHECK_OK(MPI_File_write_all_end(file, out[1], &status));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_OK(MPI_File_seek(file, (world_size + world_rank) * kInts, MPI_SEEK_SET));
  CHECK_OK(MPI_File_read_all_begin(file, back[1], kInts, MPI_INT));
  CHECK_OK(MPI_File_read_all_end(file, back[1], &status));
  CHECK_EQ(memcmp(back[1], out[1], sizeof out[1]), 0);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  CHECK_OK(MPI_File_write_ordered_begin(file, out[2], kInts, MPI_INT));
  CHECK_OK(MPI_File_write_ordered_end(file, out[2], &status));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  CHECK_OK(MPI_File_read_ordered_begin(file, back[2], kInts, MPI_INT));
  CHECK_OK(MPI_File_read_ordered_end(file, back[2], &status));
  CHECK_EQ(memcmp(back[2], out[2], sizeof out[2]), 0);
  /* One at a time, and each has an end. */
  CHECK_CLASS(MPI_File_write_all_end(file, out[0], &status), MPI_ERR_IO);
  CHECK_OK(MPI_File_write_all_begin(file, out[0], kInts, MPI_INT));
  CHECK_CLASS(MPI_File_write_all_begin(file, out[0], kInts, MPI_INT), MPI_ERR_IO);
  CHECK_OK(MPI_File_write_all_end(file, out[0], &status));
  CloseAndDelete(&file);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  TransfersAlone();
  TransfersByTheSharedPointer();
  TransfersTogether();
  BeginsAndEnds();
  return End();
}
