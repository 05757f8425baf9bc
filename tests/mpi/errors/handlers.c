/* Error handlers (MPI 4.0 section 9.3), classes, codes and strings (9.4, 9.5). */
#include "tests/mpi/check.h"

static int called, seen_code;
static MPI_Comm seen_comm;
static void OnComm(MPI_Comm* comm, int* code, ...) {
  called++;
  seen_comm = *comm;
  seen_code = *code;
}
static void OnWin(MPI_Win* win, int* code, ...) {
  (void)win;
  called += 10;
  seen_code = *code;
}

/* A call returns what the handler stored, whatever the object. */
static int stored;
static void StoreOnComm(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  *code = stored;
}
static void StoreOnWin(MPI_Win* win, int* code, ...) {
  (void)win;
  *code = stored;
}
static void StoreOnFile(MPI_File* file, int* code, ...) {
  (void)file;
  *code = stored;
}
static void StoreOnSession(MPI_Session* session, int* code, ...) {
  (void)session;
  *code = stored;
}

static void ReturnsWhatTheHandlerStored(void) {
  MPI_Errhandler on_comm, on_win, on_file, on_session;
  MPI_Comm comm, made;
  MPI_Win win;
  MPI_File file;
  MPI_Session session;
  MPI_Request request;
  void* base;
  int value = 0, flag;
  char none[] = "/nonexistent/of/a/directory";
  MPI_Comm_create_errhandler(StoreOnComm, &on_comm);
  MPI_Win_create_errhandler(StoreOnWin, &on_win);
  MPI_File_create_errhandler(StoreOnFile, &on_file);
  MPI_Session_create_errhandler(StoreOnSession, &on_session);
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Comm_set_errhandler(comm, on_comm);
  MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_SELF, &base, &win);
  MPI_Win_set_errhandler(win, on_win);
  CHECK_OK(MPI_Session_init(MPI_INFO_NULL, on_session, &session));
  for (int i = 0; i < 2; ++i) {
    stored = i == 0 ? MPI_SUCCESS : MPI_ERR_OTHER;
    CHECK_EQ(MPI_Send(&value, 1, MPI_INT, 99, 0, comm), stored);
    /* A request's error goes to its communicator. */
    char big[8] = "";
    MPI_Irecv(&value, 1, MPI_INT, 0, 0, comm, &request);
    MPI_Send(big, 8, MPI_CHAR, 0, 0, comm);
    CHECK_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), stored);
    CHECK_EQ(request, MPI_REQUEST_NULL);
    CHECK_EQ(MPI_Win_unlock(0, win), stored);
    MPI_File_set_errhandler(MPI_FILE_NULL, on_file);
    CHECK_EQ(MPI_File_open(MPI_COMM_SELF, none, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), stored);
    CHECK_EQ(MPI_File_delete(none, MPI_INFO_NULL), stored);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    if (!MpichDeviates("ends the program whatever the handler of the session")) {
      MPI_Group group;
      CHECK_EQ(MPI_Group_from_session_pset(session, "no such set", &group), stored);
    }
    /* The call that calls the handler is not the one that failed. */
    CHECK_OK(MPI_Comm_call_errhandler(comm, MPI_ERR_TOPOLOGY));
    /* An error without an object. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, on_comm);
    CHECK_EQ(MPI_Comm_dup(MPI_COMM_NULL, &made), stored);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    CHECK_OK(MPI_Iprobe(0, 0, comm, &flag, MPI_STATUS_IGNORE));
  }
  CHECK_OK(MPI_Session_finalize(&session));
  MPI_Win_free(&win);
  MPI_Comm_free(&comm);
  MPI_Errhandler_free(&on_comm);
  MPI_Errhandler_free(&on_win);
  MPI_Errhandler_free(&on_file);
  MPI_Errhandler_free(&on_session);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  MPI_Errhandler handler, got;
  MPI_Comm comm, dup;
  int class, value = 0, length;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_get_errhandler(comm, &got);
  CHECK_EQ(got, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_create_errhandler(OnComm, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Comm_get_errhandler(comm, &got);
  CHECK_EQ(got, handler);
  MPI_Errhandler_free(&got);
  MPI_Errhandler_free(&handler);  /* the communicator keeps it */
  CHECK_EQ(handler, MPI_ERRHANDLER_NULL);
  int code = MPI_Send(&value, 1, MPI_INT, world_size, 0, comm);
  CHECK_EQ(called, 1);
  CHECK_EQ(seen_comm, comm);
  CHECK_EQ(seen_code, code);
  MPI_Error_class(code, &class);
  CHECK_EQ(class, MPI_ERR_RANK);
  MPI_Comm_dup(comm, &dup);  /* inherits */
  CHECK_CLASS(MPI_Send(&value, -1, MPI_INT, 0, 0, dup), MPI_ERR_COUNT);
  CHECK_EQ(called, 2);
  MPI_Comm_call_errhandler(dup, MPI_ERR_TOPOLOGY);
  CHECK_EQ(called, 3);
  CHECK_EQ(seen_code, MPI_ERR_TOPOLOGY);
  MPI_Comm_free(&dup);

  void* base;
  MPI_Win win;
  MPI_Win_allocate(64, 1, MPI_INFO_NULL, comm, &base, &win);
  MPI_Win_create_errhandler(OnWin, &handler);
  MPI_Win_set_errhandler(win, handler);
  MPI_Errhandler_free(&handler);
  MPI_Win_call_errhandler(win, MPI_ERR_DISP);
  CHECK_EQ(called, 13);
  CHECK(MPI_Win_unlock(0, win) != MPI_SUCCESS);
  CHECK_EQ(called, 23);
  MPI_Win_free(&win);
  MPI_Comm_free(&comm);

  /* Strings: every class has one, and a code's text says more than nothing. */
  char text[MPI_MAX_ERROR_STRING], other[MPI_MAX_ERROR_STRING];
  for (int c = 0; c <= MPI_ERR_RMA_FLAVOR; c++) {
    if (c == 54) continue;  /* no class has this number */
    memset(text, 0, sizeof text);
    CHECK_OK(MPI_Error_string(c, text, &length));
    CHECK(length > 0 && length < MPI_MAX_ERROR_STRING && (int)strlen(text) == length);
    MPI_Error_class(c, &class);
    CHECK_EQ(class, c);
  }

  /* One's own. */
  int *last, found, my_class, my_code, my_code2;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &found);
  const int before = *last;
  MPI_Add_error_class(&my_class);
  MPI_Add_error_code(my_class, &my_code);
  MPI_Add_error_code(MPI_ERR_RANK, &my_code2);
  if (!MpichDeviates("MPI_LASTUSEDCODE starts above every code")) CHECK(my_class > before && my_code > before && my_code2 > before);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &found);
  CHECK(*last >= my_code2);
  MPI_Error_class(my_code, &class);
  CHECK_EQ(class, my_class);
  MPI_Error_class(my_code2, &class);
  CHECK_EQ(class, MPI_ERR_RANK);
  MPI_Add_error_string(my_class, "a class of mine");
  MPI_Add_error_string(my_code, "a code of mine");
  MPI_Error_string(my_class, text, &length);
  MPI_Error_string(my_code, other, &length);
  CHECK_STR(text, "a class of mine");
  CHECK_STR(other, "a code of mine");
  CHECK_EQ(length, strlen("a code of mine"));
  ReturnsWhatTheHandlerStored();
  return End();
}
