/* mortal SEED FILE: collective calls on files, drawn from the seed, the same at all ranks, in one of which rank 1 kills itself; some are long, so that
 * it dies in the middle of one. Every other rank goes on until a call fails, closes the file, and says how it ended. */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kInts = 100000, kCalls = 13, kLongestLife = 40000 /* microseconds */ };

static int data[kInts], rank, size;
static const char* name;

static unsigned state;
static unsigned Draw(unsigned below) {
  state = state * 1103515245u + 12345u;
  return state / 65536u % below;
}

/* In the middle of whatever rank 1 does. */
static void DieAfter(unsigned microseconds) {
  if (fork() == 0) {
    pid_t parent = getppid();
    usleep(microseconds);
    kill(parent, SIGKILL);
    _exit(0);
  }
}

static int Open(const char* buffering, MPI_File* file) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "romio_cb_write", buffering);
  MPI_Info_set(info, "romio_cb_read", buffering);
  MPI_Info_set(info, "cb_buffer_size", Draw(2) ? "4096" : "65536");
  MPI_Info_set(info, "cb_nodes", Draw(2) ? "1" : "3");
  int code = MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, info, file);
  MPI_Info_free(&info);
  return code;
}

static int SetView(MPI_File file, int piece) {
  MPI_Datatype pieces, tile;
  MPI_Type_contiguous(piece, MPI_INT, &pieces);
  MPI_Type_create_resized(pieces, 0, (MPI_Aint)4 * piece * size, &tile);
  MPI_Type_commit(&tile);
  int code = MPI_File_set_view(file, (MPI_Offset)4 * piece * rank, MPI_INT, tile, "native", MPI_INFO_NULL);
  MPI_Type_free(&pieces);
  MPI_Type_free(&tile);
  return code;
}

static int Call(MPI_File file) {
  const int count = Draw(3) == 0 ? (int)Draw(10) : (int)Draw(kInts);
  MPI_Request request;
  MPI_Offset size_now;
  int code;
  switch (Draw(kCalls)) {
    case 0: return MPI_File_write_at_all(file, 0, data, count, MPI_INT, MPI_STATUS_IGNORE);
    case 1: return MPI_File_read_at_all(file, 0, data, count, MPI_INT, MPI_STATUS_IGNORE);
    case 2: return MPI_File_write_all(file, data, count % 100, MPI_INT, MPI_STATUS_IGNORE);
    case 3: return MPI_File_write_ordered(file, data, count % 1000, MPI_INT, MPI_STATUS_IGNORE);
    case 4:
      code = MPI_File_write_shared(file, data, 1, MPI_INT, MPI_STATUS_IGNORE);
      return code != 0 ? code : MPI_File_get_position_shared(file, &size_now);
    case 5:
      code = MPI_File_iwrite_at_all(file, 0, data, count, MPI_INT, &request);
      return code != 0 ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
    case 6:
      code = MPI_File_read_all_begin(file, data, count % 1000, MPI_INT);
      return code != 0 ? code : MPI_File_read_all_end(file, data, MPI_STATUS_IGNORE);
    case 7: return MPI_File_set_size(file, 4 * count);
    case 8: return MPI_File_sync(file);
    case 9: return SetView(file, 1 + (int)Draw(3000));
    case 10: return MPI_File_set_atomicity(file, (int)Draw(2));
    case 11: return MPI_File_seek_shared(file, (MPI_Offset)Draw(100), MPI_SEEK_SET);
    default: return MPI_File_preallocate(file, 4 * (count + 1));
  }
}

int main(int argc, char** argv) {
  int code, class, length;
  char text[MPI_MAX_ERROR_STRING] = "";
  MPI_File file;
  if (argc != 3) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  state = (unsigned)atoi(argv[1]);
  name = argv[2];
  MPI_Barrier(MPI_COMM_WORLD);
  const unsigned life = Draw(kLongestLife);
  if (rank == 1) DieAfter(life);
  do {
    code = Open(Draw(2) ? "enable" : "automatic", &file);
    for (unsigned calls = Draw(30); code == MPI_SUCCESS && calls > 0; calls--) code = Call(file);
    const int closed = file != MPI_FILE_NULL ? MPI_File_close(&file) : MPI_SUCCESS;
    if (code == MPI_SUCCESS) code = closed;
  } while (code == MPI_SUCCESS);
  MPI_Error_class(code, &class);
  MPI_Error_string(code, text, &length);
  printf("rank %d: %s: %s\n", rank, class == MPIX_ERR_PROC_FAILED || class == MPI_ERR_PROC_ABORTED ? "a death" : "an error", text);
  fflush(stdout);
  _exit(0);
}
