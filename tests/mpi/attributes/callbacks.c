/* Attributes (MPI 4.0 section 7.7) of communicators, types and windows: copy and delete callbacks, errors from them, freed keyvals. */
#include "tests/mpi/check.h"

static int copies, deletes, last_deleted;

static int Copy(int object, int keyval, void* extra, void* in, void* out, int* flag) {
  (void)object, (void)keyval;
  copies++;
  CHECK_EQ((long)extra, 99);
  *(void**)out = (char*)in + 1;
  *flag = 1;
  return MPI_SUCCESS;
}
static int CopyNothing(int object, int keyval, void* extra, void* in, void* out, int* flag) {
  (void)object, (void)keyval, (void)extra, (void)in, (void)out;
  *flag = 0;
  return MPI_SUCCESS;
}
static int Delete(int object, int keyval, void* value, void* extra) {
  (void)object, (void)keyval, (void)extra;
  deletes++;
  last_deleted = (int)(long)value;
  return MPI_SUCCESS;
}
static int RefuseDelete(int object, int keyval, void* value, void* extra) {
  (void)object, (void)keyval, (void)value, (void)extra;
  return MPI_ERR_OTHER;
}

static void OnComms(void) {
  int key, shy, found;
  long value;
  void* got;
  MPI_Comm comm, dup;
  MPI_Comm_create_keyval(Copy, Delete, &key, (void*)99);
  MPI_Comm_create_keyval(CopyNothing, Delete, &shy, NULL);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_get_attr(comm, key, &got, &found);
  CHECK(!found);
  MPI_Comm_set_attr(comm, key, (void*)10);
  MPI_Comm_set_attr(comm, shy, (void*)500);
  MPI_Comm_set_attr(comm, key, (void*)20);  /* the old value is deleted */
  CHECK_EQ(deletes, 1);
  CHECK_EQ(last_deleted, 10);
  MPI_Comm_get_attr(comm, key, &got, &found);
  value = (long)got;
  CHECK(found && value == 20);
  MPI_Comm_dup(comm, &dup);
  CHECK_EQ(copies, 1);
  MPI_Comm_get_attr(dup, key, &got, &found);
  CHECK(found && (long)got == 21);
  MPI_Comm_get_attr(dup, shy, &got, &found);
  CHECK(!found);
  MPI_Comm_delete_attr(dup, key);
  CHECK_EQ(last_deleted, 21);
  MPI_Comm_get_attr(dup, key, &got, &found);
  CHECK(!found);
  MPI_Comm_free(&dup);
  CHECK_EQ(deletes, 2);
  /* A freed keyval stays usable where it is set. */
  MPI_Comm_free_keyval(&key);
  CHECK_EQ(key, MPI_KEYVAL_INVALID);
  deletes = 0;
  MPI_Comm_free(&comm);
  CHECK_EQ(deletes, 2);
  MPI_Comm_free_keyval(&shy);
  /* A refused deletion leaves the communicator. */
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, RefuseDelete, &key, NULL);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_attr(comm, key, (void*)1);
  CHECK(MPI_Comm_delete_attr(comm, key) != MPI_SUCCESS);
  MPI_Comm_get_attr(comm, key, &got, &found);
  CHECK(found);
  MPI_Comm_free_keyval(&key);
  /* The ready-made callbacks. */
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  MPI_Comm world_dup, next;
  MPI_Comm_dup(MPI_COMM_WORLD, &world_dup);
  MPI_Comm_set_attr(world_dup, key, (void*)77);
  MPI_Comm_dup(world_dup, &next);
  MPI_Comm_get_attr(next, key, &got, &found);
  CHECK(found && (long)got == 77);
  MPI_Comm_free(&world_dup);
  MPI_Comm_free(&next);
  MPI_Comm_free_keyval(&key);
}

/* Handles of a keyval that was copied before it was freed serve while an attribute has it: to ask, to delete, to free again. */
static void ByCopiesOfTheHandle(void) {
  int key, copy, found;
  void* got;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, Delete, &key, NULL);
  MPI_Comm_set_attr(comm, key, (void*)40);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, (void*)41);
  copy = key;
  MPI_Comm_free_keyval(&key);
  key = copy;
  CHECK_OK(MPI_Comm_free_keyval(&key));
  CHECK_EQ(key, MPI_KEYVAL_INVALID);
  CHECK_OK(MPI_Comm_get_attr(comm, copy, &got, &found));
  CHECK(found && (long)got == 40);
  deletes = 0;
  CHECK_OK(MPI_Comm_delete_attr(comm, copy));
  CHECK_EQ(last_deleted, 40);
  CHECK_OK(MPI_Comm_delete_attr(MPI_COMM_SELF, copy));
  CHECK_EQ(last_deleted, 41);
  CHECK_EQ(deletes, 2);
  MPI_Comm_free(&comm);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* What a callback returns reaches the caller: as it is when the program made the code, and no duplicate is left. */
static int my_code;
static int RefuseCopy(int object, int keyval, void* extra, void* in, void* out, int* flag) {
  (void)object, (void)keyval, (void)extra, (void)in, (void)out, (void)flag;
  return my_code;
}
static void CodesOfCallbacks(void) {
  int my_class, key;
  MPI_Comm comm, dup;
  MPI_Datatype type, copy = MPI_INT;
  MPI_Add_error_class(&my_class);
  MPI_Add_error_code(my_class, &my_code);
  MPI_Add_error_string(my_code, "a copy that I refuse");
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_create_keyval(RefuseCopy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  MPI_Comm_set_attr(comm, key, NULL);
  CHECK_EQ(MPI_Comm_dup(comm, &dup), my_code);
  MPI_Comm_free_keyval(&key);
  MPI_Comm_free(&comm);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Type_create_keyval(RefuseCopy, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
  MPI_Type_contiguous(2, MPI_INT, &type);
  MPI_Type_set_attr(type, key, NULL);
  CHECK_EQ(MPI_Type_dup(type, &copy), my_code);
  CHECK_EQ(copy, MPI_DATATYPE_NULL);
  MPI_Type_free_keyval(&key);
  MPI_Type_free(&type);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void OnTypes(void) {
  int key, found;
  void* got;
  MPI_Datatype type, dup;
  MPI_Type_create_keyval(Copy, Delete, &key, (void*)99);
  MPI_Type_contiguous(2, MPI_INT, &type);
  MPI_Type_set_attr(type, key, (void*)5);
  MPI_Type_set_attr(MPI_INT, key, (void*)15);
  MPI_Type_dup(type, &dup);
  MPI_Type_get_attr(dup, key, &got, &found);
  CHECK(found && (long)got == 6);
  MPI_Type_get_attr(MPI_INT, key, &got, &found);
  CHECK(found && (long)got == 15);
  MPI_Type_delete_attr(MPI_INT, key);
  deletes = 0;
  MPI_Type_free(&type);
  MPI_Type_free(&dup);
  CHECK_EQ(deletes, 2);
  MPI_Type_free_keyval(&key);
}

/* MPI_LB and MPI_UB of MPI-1 are datatypes here too, as in MPICH: a wrong keyval is named, not the datatype. */
static void OnMarkers(void) {
  const MPI_Datatype markers[] = {MPI_LB, MPI_UB};
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < 2; ++i) {
    int key, found, class;
    void* got;
    MPI_Error_class(MPI_Type_get_attr(markers[i], MPI_KEYVAL_INVALID, &got, &found), &class);
    CHECK_EQ(class, MPI_ERR_KEYVAL);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, Delete, &key, NULL);
    CHECK_OK(MPI_Type_set_attr(markers[i], key, (void*)7));
    CHECK_OK(MPI_Type_get_attr(markers[i], key, &got, &found));
    CHECK(found && (long)got == 7);
    deletes = 0;
    CHECK_OK(MPI_Type_delete_attr(markers[i], key));
    CHECK_EQ(deletes, 1);
    MPI_Type_free_keyval(&key);
  }
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void OnWindows(void) {
  int key, found;
  void *got, *base;
  MPI_Win win;
  MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, Delete, &key, NULL);
  MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  MPI_Win_set_attr(win, key, (void*)3);
  MPI_Win_get_attr(win, key, &got, &found);
  CHECK(found && (long)got == 3);
  deletes = 0;
  MPI_Win_free(&win);
  CHECK_EQ(deletes, 1);
  CHECK_EQ(last_deleted, 3);
  MPI_Win_free_keyval(&key);
}

/* Attributes of MPI_COMM_SELF go first of all in MPI_Finalize, the last set first. */
static int order[3], n_order;
static int Note(MPI_Comm comm, int keyval, void* value, void* extra) {
  int size = 0;
  (void)keyval, (void)extra;
  MPI_Comm_size(comm, &size);  /* MPI still works */
  if (size == 1 && n_order < 3) order[n_order++] = (int)(long)value;
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  OnComms();
  ByCopiesOfTheHandle();
  CodesOfCallbacks();
  OnTypes();
  OnMarkers();
  OnWindows();
  for (long i = 0; i < 3; i++) {
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, Note, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, (void*)(i + 1));
    MPI_Comm_free_keyval(&key);
  }
  MPI_Finalize();
  CHECK_EQ(n_order, 3);
  for (int i = 0; i < 3; i++) CHECK_EQ(order[i], 3 - i);
  return failures != 0;
}
