/* For LD_PRELOAD: when an MPI program calls MPI_Finalize, says on stdout which verbs libraries and devices this process
 * has mapped, and how many RDMA operations it posted, a line each:
 *
 *   verbs: rank 1: maps /dev/infiniband/uverbs0
 *   verbs: rank 1: posted 17 RDMA operations
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static void ShowMapped(int rank) {
  static const char* const kNames[] = {"/dev/infiniband/", "libibverbs", "librdmacm", "libsiw", "libmpich"};
  char line[4352], last[4352] = "";
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    const char* path = strchr(line, '/');
    if (path == NULL || strcmp(path, last) == 0) continue;
    for (size_t i = 0; i < sizeof kNames / sizeof *kNames; i++) {
      if (strstr(path, kNames[i]) != NULL) printf("verbs: rank %d: maps %s", rank, path);
    }
    strcpy(last, path);
  }
  if (maps != NULL) fclose(maps);
}

static MPI_T_pvar_session session;
static MPI_T_pvar_handle operations;

/* A handle counts from when it was made. */
static void CountOperations(void) {
  int provided, index, elements;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_T_pvar_session_create(&session);
  MPI_T_pvar_get_index("rdma_operations", MPI_T_PVAR_CLASS_COUNTER, &index);
  MPI_T_pvar_handle_alloc(session, index, NULL, &operations, &elements);
}

int MPI_Init(int* argc, char*** argv) {
  CountOperations();
  return PMPI_Init(argc, argv);
}

int MPI_Finalize(void) {
  int rank;
  unsigned long long posted = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  ShowMapped(rank);
  MPI_T_pvar_read(session, operations, &posted);
  printf("verbs: rank %d: posted %llu RDMA operations\n", rank, posted);
  fflush(stdout);
  MPI_T_pvar_session_free(&session);
  MPI_T_finalize();
  return PMPI_Finalize();
}
