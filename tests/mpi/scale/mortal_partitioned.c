/* mortal_partitioned SEED: rank 1 kills itself while it has partitions from rank 0 and sends some to rank 2; rank 3 waits for a send to it that it
 * does not receive, and of which half the partitions never become ready. Every other rank says how that ended: "an error" of a dead rank. */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PARTS = 16, LONG = 1 << 20 };
static char memory[4 * LONG];

static unsigned state;
static unsigned draw(unsigned below) {
  state = state * 1103515245u + 12345u;
  return state / 65536u % below;
}

/* Rank 2 hears of the death as an event of MPI_T, too. */
static int rank_1_died;
static void on_death(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data) {
  int process = -1;
  (void)registration, (void)safety, (void)data;
  MPI_T_event_read(instance, 0, &process);
  if (process == 1) rank_1_died = 1; /* others end without MPI_Finalize */
}
static void listen_for_deaths(void) {
  MPI_T_event_registration registration;
  int provided, index;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  if (MPI_T_event_get_index("process_died", &index) != MPI_SUCCESS) return;
  MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &registration);
  MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, NULL, on_death);
}

/* In the middle of whatever rank 1 does. */
static void die_after(unsigned microseconds) {
  if (fork() == 0) {
    pid_t parent = getppid();
    usleep(microseconds);
    kill(parent, SIGKILL);
    _exit(0);
  }
}

/* Rounds of a request, until one fails. */
static int repeat(MPI_Request *request, int sends) {
  int code = MPI_SUCCESS;
  while (code == MPI_SUCCESS) {
    code = MPI_Start(request);
    for (int p = 0; sends && code == MPI_SUCCESS && p < PARTS; p++) code = MPI_Pready(p, *request);
    if (code == MPI_SUCCESS) code = MPI_Wait(request, MPI_STATUS_IGNORE);
  }
  return code;
}

int main(int argc, char **argv) {
  int rank, code = MPI_SUCCESS, class, bytes;
  unsigned microseconds;
  MPI_Request in, out;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  state = (unsigned)atoi(argv[1]);
  bytes = draw(2) ? 1 + (int)draw(1000) : (int)draw(250000);
  microseconds = draw(30000);
  MPI_Precv_init(memory, PARTS, bytes, MPI_CHAR, rank == 1 ? 0 : 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &in);
  MPI_Psend_init(memory, PARTS, bytes, MPI_CHAR, rank == 1 ? 2 : 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &out);
  if (rank == 2) listen_for_deaths();
  MPI_Barrier(MPI_COMM_WORLD);
  switch (rank) {
    case 0: code = repeat(&out, 1); break;
    case 1:
      die_after(microseconds);
      for (;;) {
        MPI_Start(&in);
        MPI_Start(&out);
        MPI_Wait(&in, MPI_STATUS_IGNORE);
        MPI_Pready_range(0, PARTS - 1, out);
        MPI_Wait(&out, MPI_STATUS_IGNORE);
      }
    case 2:
      code = repeat(&in, 0);
      if (!rank_1_died) printf("rank 2 heard of no death\n"), code = MPI_ERR_OTHER;
      break;
    default:
      MPI_Request_free(&out);
      MPI_Psend_init(memory, 4, LONG, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &out);
      code = MPI_Start(&out);
      if (code == MPI_SUCCESS) code = MPI_Pready_range(1, 2, out);
      if (code == MPI_SUCCESS) code = MPI_Wait(&out, MPI_STATUS_IGNORE);
  }
  MPI_Error_class(code, &class);
  printf("rank %d: %s\n", rank, class == MPIX_ERR_PROC_FAILED || class == MPI_ERR_PROC_ABORTED ? "an error" : "another error");
  fflush(stdout);
  _exit(0);
}
