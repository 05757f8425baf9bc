/* Environment, attributes, errors, info and statuses through a binary built for MPICH. Prints "ok" on rank 0. */
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

static int copies, deletes;

static int Copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag) {
  (void)comm, (void)keyval;
  ++copies;
  *(void **)out = (char *)in + *(int *)extra;
  *flag = 1;
  return MPI_SUCCESS;
}

static int Delete(MPI_Comm comm, int keyval, void *value, void *extra) {
  (void)comm, (void)keyval, (void)value, (void)extra;
  ++deletes;
  return MPI_SUCCESS;
}

static int RefuseDelete(MPI_Comm comm, int keyval, void *value, void *extra) {
  (void)comm, (void)keyval, (void)extra;
  return value == NULL ? MPI_SUCCESS : MPI_ERR_OTHER;
}

static void BeforeInit(void) {
  int flag = -1, version, subversion, length;
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  MPI_Initialized(&flag);
  EXPECT(flag == 0);
  MPI_Finalized(&flag);
  EXPECT(flag == 0);
  MPI_Get_version(&version, &subversion);
  EXPECT(version == 4 && subversion == 0);
  MPI_Get_library_version(text, &length);
  EXPECT(length == (int)strlen(text) && length > 0);
  MPI_Info info;
  EXPECT(MPI_Info_create(&info) == MPI_SUCCESS);
  EXPECT(MPI_Info_set(info, "key", "value") == MPI_SUCCESS);
  EXPECT(MPI_Info_free(&info) == MPI_SUCCESS && info == MPI_INFO_NULL);
}

static void PredefinedAttributes(void) {
  int *value, flag;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag);
  EXPECT(flag && *value >= 32767);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &value, &flag);
  EXPECT(flag && *value == MPI_PROC_NULL);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag);
  EXPECT(flag && *value == 0);
  MPI_Attr_get(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag);
  EXPECT(flag && *value >= MPI_ERR_LASTCODE);
  const int before = *value;
  int added;
  MPI_Add_error_class(&added);
  EXPECT(added > before);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag);
  EXPECT(flag && *value == added);
}

static void OwnAttributes(void) {
  int keyval, extra = 4, flag;
  char *value, numbers[8];
  MPI_Comm dup;
  EXPECT(MPI_Comm_create_keyval(Copy, Delete, &keyval, &extra) == MPI_SUCCESS);
  MPI_Comm_set_attr(MPI_COMM_SELF, keyval, numbers);
  MPI_Comm_dup(MPI_COMM_SELF, &dup);
  EXPECT(copies == 1);
  MPI_Comm_get_attr(dup, keyval, &value, &flag);
  EXPECT(flag && value == numbers + 4);
  MPI_Comm_free(&dup);
  EXPECT(deletes == 1);
  MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
  EXPECT(deletes == 2);
  MPI_Comm_delete_attr(MPI_COMM_SELF, keyval);
  EXPECT(deletes == 3);
  MPI_Comm_get_attr(MPI_COMM_SELF, keyval, &value, &flag);
  EXPECT(!flag);
  MPI_Comm_free_keyval(&keyval);
  EXPECT(keyval == MPI_KEYVAL_INVALID);

  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, keyval, numbers);
  MPI_Comm_dup(MPI_COMM_SELF, &dup);
  MPI_Comm_get_attr(dup, keyval, &value, &flag);
  EXPECT(flag && value == numbers);
  MPI_Comm_free(&dup);
  MPI_Comm_delete_attr(MPI_COMM_SELF, keyval);
  MPI_Comm_free_keyval(&keyval);

  /* An attribute whose delete function refuses stays; the communicator lives. */
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, RefuseDelete, &keyval, NULL);
  MPI_Comm_dup(MPI_COMM_SELF, &dup);
  MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN);
  MPI_Comm_set_attr(dup, keyval, numbers);
  EXPECT(MPI_Comm_delete_attr(dup, keyval) != MPI_SUCCESS);
  MPI_Comm_get_attr(dup, keyval, &value, &flag);
  EXPECT(flag && value == numbers);
  MPI_Comm_free_keyval(&keyval);

  int type_keyval;
  MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &type_keyval, NULL);
  MPI_Datatype type, copy;
  MPI_Type_contiguous(3, MPI_INT, &type);
  MPI_Type_set_attr(type, type_keyval, numbers);
  MPI_Type_dup(type, &copy);
  MPI_Type_get_attr(copy, type_keyval, &value, &flag);
  EXPECT(flag && value == numbers);
  MPI_Type_free(&type);
  MPI_Type_free(&copy);
  MPI_Type_free_keyval(&type_keyval);
}

static int handled_code;
static MPI_Comm handled_comm;
static void Handler(MPI_Comm *comm, int *code, ...) {
  handled_comm = *comm;
  handled_code = *code;
}

static void Errors(void) {
  MPI_Errhandler handler, got;
  int class, length;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(Handler, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Comm_get_errhandler(comm, &got);
  EXPECT(got == handler);
  MPI_Errhandler_free(&got);
  EXPECT(got == MPI_ERRHANDLER_NULL);
  MPI_Errhandler_free(&handler);
  int code = MPI_Send(text, -5, MPI_CHAR, 0, 0, comm);
  EXPECT(code != MPI_SUCCESS && code == handled_code && handled_comm == comm);
  MPI_Error_class(code, &class);
  EXPECT(class == MPI_ERR_COUNT);
  MPI_Error_string(code, text, &length);
  EXPECT(strstr(text, "-5") != NULL && length == (int)strlen(text));
  code = MPI_Send(text, 1, MPI_CHAR, 1000, 0, comm);
  MPI_Error_class(code, &class);
  EXPECT(class == MPI_ERR_RANK);

  int added_class, added_code;
  MPI_Add_error_class(&added_class);
  MPI_Add_error_code(added_class, &added_code);
  MPI_Add_error_string(added_code, "the program's own error");
  MPI_Error_class(added_code, &class);
  EXPECT(class == added_class);
  MPI_Error_string(added_code, text, &length);
  EXPECT(strcmp(text, "the program's own error") == 0);
  EXPECT(MPI_Comm_call_errhandler(comm, added_code) == MPI_SUCCESS);
  EXPECT(handled_code == added_code);

  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Error_class(MPI_Comm_rank(MPI_COMM_NULL, &length), &class);
  MPI_Comm_free(&comm);
  /* Without an object, MPI_COMM_SELF's handler counts (MPI 4.0). */
  EXPECT(class == MPI_ERR_COMM);
}

static void Infos(void) {
  MPI_Info info, copy;
  char value[MPI_MAX_INFO_VAL + 1], key[MPI_MAX_INFO_KEY + 1];
  int flag, count, length;
  MPI_Info_create(&info);
  MPI_Info_set(info, "one", "first");
  MPI_Info_set(info, "two", "second");
  MPI_Info_set(info, "one", "again");
  MPI_Info_get_nkeys(info, &count);
  EXPECT(count == 2);
  MPI_Info_get_nthkey(info, 1, key);
  EXPECT(strcmp(key, "two") == 0);
  MPI_Info_get(info, "one", 2, value, &flag);
  EXPECT(flag && strcmp(value, "ag") == 0);
  MPI_Info_get_valuelen(info, "two", &length, &flag);
  EXPECT(flag && length == 6);
  length = 4;
  MPI_Info_get_string(info, "two", &length, value, &flag);
  EXPECT(flag && length == 7 && strcmp(value, "sec") == 0);
  MPI_Info_dup(info, &copy);
  MPI_Info_delete(info, "two");
  MPI_Info_get(info, "two", 10, value, &flag);
  EXPECT(!flag);
  MPI_Info_get(copy, "two", 10, value, &flag);
  EXPECT(flag && strcmp(value, "second") == 0);
  MPI_Info_free(&info);
  MPI_Info_free(&copy);
  MPI_Info_get_nkeys(MPI_INFO_ENV, &count);
  EXPECT(count >= 0);
}

static void Memory(void) {
  double *memory;
  MPI_Alloc_mem(1000 * sizeof(double), MPI_INFO_NULL, &memory);
  memory[999] = 1;
  MPI_Aint first, last;
  MPI_Get_address(memory, &first);
  MPI_Get_address(memory + 999, &last);
  EXPECT(MPI_Aint_diff(last, first) == 999 * (MPI_Aint)sizeof(double));
  EXPECT(MPI_Aint_add(first, 8) == (MPI_Aint)(memory + 1));
  MPI_Free_mem(memory);
  MPI_Status status;
  int count;
  MPI_Status_set_elements(&status, MPI_DOUBLE, 7);
  MPI_Status_set_cancelled(&status, 1);
  MPI_Get_count(&status, MPI_DOUBLE, &count);
  EXPECT(count == 7);
  MPI_Test_cancelled(&status, &count);
  EXPECT(count == 1);
}

static int finalized_last;
static int AtEnd(MPI_Comm comm, int keyval, void *value, void *extra) {
  int flag;
  (void)comm, (void)keyval, (void)extra;
  MPI_Finalized(&flag);
  finalized_last = flag == 0 ? (int)(size_t)value : -1;
  return MPI_SUCCESS;
}

int main(int argc, char **argv) {
  int rank, size, provided, flag, sum;
  BeforeInit();
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  EXPECT(provided == MPI_THREAD_MULTIPLE);
  MPI_Query_thread(&provided);
  EXPECT(provided == MPI_THREAD_MULTIPLE);
  MPI_Is_thread_main(&flag);
  EXPECT(flag);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  EXPECT(argc > 1 && size == atoi(argv[1]));
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  PredefinedAttributes();
  OwnAttributes();
  Errors();
  Infos();
  Memory();
  EXPECT(MPI_Wtick() > 0 && MPI_Wtick() < 1);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(sum == size * (size - 1) / 2);
  int keyval;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, AtEnd, &keyval, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, keyval, (void *)17);
  MPI_Finalize();
  EXPECT(finalized_last == 17);
  MPI_Finalized(&flag);
  EXPECT(flag);
  if (rank == 0) printf("ok\n");
  return 0;
}
