/* MPI_T: every variable and category can be asked for, by index and by name, before MPI_Init too; Weft's counters count. Prints "ok" on rank 0. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                                        \
  do {                                                                                           \
    if (!(condition)) {                                                                          \
      fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition);                   \
      exit(1);                                                                                   \
    }                                                                                            \
  } while (0)

static void ControlVariables(void) {
  int count, index;
  EXPECT(MPI_T_cvar_get_num(&count) == MPI_SUCCESS && count > 0);
  for (int i = 0; i < count; ++i) {
    char name[256], help[2048];
    int name_length = sizeof name, help_length = sizeof help, verbosity, bind, scope, elements;
    MPI_Datatype type;
    MPI_T_enum enumeration;
    EXPECT(MPI_T_cvar_get_info(i, name, &name_length, &verbosity, &type, &enumeration, help, &help_length, &bind, &scope) == MPI_SUCCESS);
    EXPECT(name_length == (int)strlen(name) + 1);
    EXPECT(MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS && index == i);
    if (type != MPI_CHAR) continue;
    MPI_T_cvar_handle handle;
    EXPECT(MPI_T_cvar_handle_alloc(i, NULL, &handle, &elements) == MPI_SUCCESS);
    char *value = calloc(1, (size_t)elements + 1);
    EXPECT(MPI_T_cvar_read(handle, value) == MPI_SUCCESS);
    EXPECT((int)strlen(value) <= elements);
    free(value);
    EXPECT(MPI_T_cvar_handle_free(&handle) == MPI_SUCCESS && handle == MPI_T_CVAR_HANDLE_NULL);
  }
  EXPECT(MPI_T_cvar_get_index("NO_SUCH_VARIABLE", &index) == MPI_T_ERR_INVALID_NAME);
  char name[8];
  int length = sizeof name;
  EXPECT(MPI_T_cvar_get_info(count, name, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
}

static void Categories(void) {
  int count, cvars, pvars, categories;
  EXPECT(MPI_T_category_get_num(&count) == MPI_SUCCESS);
  for (int i = 0; i < count; ++i) {
    char name[256], help[2048];
    int name_length = sizeof name, help_length = sizeof help, index;
    EXPECT(MPI_T_category_get_info(i, name, &name_length, help, &help_length, &cvars, &pvars, &categories) == MPI_SUCCESS);
    EXPECT(MPI_T_category_get_index(name, &index) == MPI_SUCCESS && index == i);
    int *indices = calloc((size_t)cvars + 1, sizeof *indices);
    EXPECT(MPI_T_category_get_cvars(i, cvars, indices) == MPI_SUCCESS);
    free(indices);
  }
}

static unsigned long long Read(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  unsigned long long value = 0;
  EXPECT(MPI_T_pvar_read(session, handle, &value) == MPI_SUCCESS);
  return value;
}

/* Other libraries have no variable of this name. */
static void Counters(int rank, int size) {
  MPI_T_pvar_session session;
  int messages, bytes, one;
  if (MPI_T_pvar_get_index("messages_sent", MPI_T_PVAR_CLASS_COUNTER, &messages) != MPI_SUCCESS) return;
  EXPECT(MPI_T_pvar_get_index("bytes_received", MPI_T_PVAR_CLASS_COUNTER, &bytes) == MPI_SUCCESS);
  EXPECT(MPI_T_pvar_session_create(&session) == MPI_SUCCESS);
  MPI_T_pvar_handle sent, received;
  EXPECT(MPI_T_pvar_handle_alloc(session, messages, NULL, &sent, &one) == MPI_SUCCESS && one == 1);
  EXPECT(MPI_T_pvar_handle_alloc(session, bytes, NULL, &received, &one) == MPI_SUCCESS && one == 1);
  static char data[200000];
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  /* Who sends to us does not begin before we count, nor go on before we have looked: a call takes whatever comes. */
  MPI_Sendrecv(NULL, 0, MPI_CHAR, left, 1, NULL, 0, MPI_CHAR, right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < 3; ++i) {
    MPI_Sendrecv_replace(data, sizeof data, MPI_CHAR, right, 0, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  EXPECT(Read(session, sent) == (size > 1 ? 4u : 0u));
  EXPECT(Read(session, received) == (size > 1 ? 3 * sizeof data : 0u));
  MPI_Sendrecv(NULL, 0, MPI_CHAR, left, 1, NULL, 0, MPI_CHAR, right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS);
  EXPECT(Read(session, sent) == 0);
  EXPECT(MPI_T_pvar_handle_free(session, &sent) == MPI_SUCCESS);
  EXPECT(MPI_T_pvar_session_free(&session) == MPI_SUCCESS && session == MPI_T_PVAR_SESSION_NULL);
}

int main(int argc, char **argv) {
  int provided, rank, size, count;
  EXPECT(MPI_T_cvar_get_num(&count) == MPI_T_ERR_NOT_INITIALIZED);
  EXPECT(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS);
  ControlVariables();
  Categories();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  Counters(rank, size);
  MPI_Finalize();
  EXPECT(MPI_T_finalize() == MPI_SUCCESS);
  EXPECT(MPI_T_cvar_get_num(&count) == MPI_T_ERR_NOT_INITIALIZED);
  if (rank == 0) printf("ok\n");
  return 0;
}
