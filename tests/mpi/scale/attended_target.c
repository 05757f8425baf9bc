/* Two ranks. Rank 1 waits in MPI_Recv while rank 0 changes its memory, one operation after the other. Rank 1 polls all the while (the test sets
 * WEFT_MPI_SPIN_US): it carries the operations out itself, and does not have its other thread woken for each. */
#include <ctype.h>
#include <dirent.h>

#include "tests/mpi/check.h"

enum { kOperations = 4000 };

/* Times that the thread of that name went to sleep; -1: there is none. */
static long SleepsOf(const char* name) {
  long sleeps = -1;
  DIR* tasks = opendir("/proc/self/task");
  for (struct dirent* task; tasks != NULL && (task = readdir(tasks)) != NULL;) {
    char path[300], line[200];
    long count = -1;
    int is_it = 0;
    if (!isdigit((unsigned char)task->d_name[0])) continue;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
    FILE* status = fopen(path, "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
      if (strncmp(line, "Name:\t", 6) == 0) is_it = strcspn(line + 6, "\n") == strlen(name) && strncmp(line + 6, name, strlen(name)) == 0;
      (void)sscanf(line, "voluntary_ctxt_switches: %ld", &count);
    }
    if (status != NULL) fclose(status);
    if (is_it) sleeps = count;
  }
  if (tasks != NULL) closedir(tasks);
  return sleeps;
}

int main(int argc, char** argv) {
  long *memory, one = 1, was = -1;
  MPI_Win window;
  Begin(&argc, &argv);
  MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  *memory = 0;
  MPI_Win_lock_all(0, window);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) {
    for (int i = 0; i < kOperations; i++) {
      MPI_Fetch_and_op(&one, &was, MPI_LONG, 1, 0, MPI_SUM, window);
      MPI_Win_flush(1, window);
      CHECK_EQ(was, i);
    }
    MPI_Send(&one, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD);
  } else if (world_rank == 1) {
    const long before = SleepsOf("weft-rma");
    const double start = MPI_Wtime();
    MPI_Recv(&was, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const double milliseconds = 1000 * (MPI_Wtime() - start);
    const long after = SleepsOf("weft-rma"), sleeps = after - (before < 0 ? 0 : before); /* it may not have had its name yet */
    CHECK(after >= 0);
    printf("%ld sleeps in %.0f ms\n", sleeps, milliseconds);
    /* It looks once a millisecond whether the rank still polls. */
    CHECK(sleeps < kOperations / 4 + 2 * milliseconds);
  }
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  return End();
}
