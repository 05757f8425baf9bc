/* MPI 4.0 section 11.3: a program that never calls MPI_Init. */
#include <ctype.h>

#include "../check.h"

static void Lower(const char* from, char* to) {
  while ((*to++ = (char)tolower((unsigned char)*from++))) {
  }
}

static MPI_Group GroupOf(MPI_Session session, const char* set) {
  MPI_Group group = MPI_GROUP_NULL;
  CHECK_OK(MPI_Group_from_session_pset(session, set, &group));
  return group;
}

static void LooksAtSets(MPI_Session session) {
  int count = 0, found = 0, flag;
  CHECK_OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count));
  CHECK(count >= 2);
  for (int i = 0; i < count; ++i) {
    int length = 0;
    CHECK_OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, NULL));
    CHECK(length > 1 && length <= MPI_MAX_PSET_NAME_LEN);
    char name[MPI_MAX_PSET_NAME_LEN], small[MPI_MAX_PSET_NAME_LEN], part[4] = "???";
    CHECK_OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name));
    CHECK_EQ(strlen(name) + 1, length);
    int room = 3;
    CHECK_OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &room, part));
    CHECK(strncmp(part, name, strlen(part)) == 0 && part[3] == 0);
    Lower(name, small);
    if (strcmp(small, "mpi://world") == 0) found |= 1;
    if (strcmp(small, "mpi://self") == 0) found |= 2;
    MPI_Info info;
    char value[20];
    int size, set_size;
    CHECK_OK(MPI_Session_get_pset_info(session, name, &info));
    CHECK_OK(MPI_Info_get(info, "mpi_size", sizeof value - 1, value, &flag));
    CHECK(flag);
    MPI_Group group = GroupOf(session, name);
    MPI_Group_size(group, &size);
    set_size = flag ? atoi(value) : -1;
    CHECK_EQ(set_size, size);
    MPI_Group_free(&group);
    MPI_Info_free(&info);
  }
  CHECK_EQ(found, 3);
}

static void TalkOn(MPI_Comm comm) {
  int rank, size, sum = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  CHECK_OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
  CHECK_EQ(sum, size * (size - 1) / 2);
  int right = -1;
  CHECK_OK(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 1, &right, 1, MPI_INT, (rank + size - 1) % size, 1, comm,
                        MPI_STATUS_IGNORE));
  CHECK_EQ(right, (rank + size - 1) % size);
}

static void MakesCommunicators(MPI_Session session) {
  MPI_Group world = GroupOf(session, "mpi://WORLD"), self = GroupOf(session, "mpi://SELF");
  MPI_Comm all, mine, other;
  MPI_Group_size(world, &world_size);
  if (world_size == 1 && MpichDeviates("MPICH 4.0.2 takes a world of one for no set")) return;
  CHECK_OK(MPI_Comm_create_from_group(world, "org.example.all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &all));
  MPI_Comm_rank(all, &world_rank);
  MPI_Comm_size(all, &world_size);
  TalkOn(all);
  CHECK_OK(MPI_Comm_create_from_group(self, "org.example.mine", MPI_INFO_NULL, MPI_ERRORS_RETURN, &mine));
  TalkOn(mine);
  CHECK_OK(MPI_Comm_create_from_group(world, "org.example.all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &other));
  TalkOn(other);
  int result;
  CHECK_OK(MPI_Comm_compare(all, other, &result));
  CHECK_EQ(result, MPI_CONGRUENT);
  MPI_Comm none = MPI_COMM_SELF;
  CHECK_OK(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "org.example.none", MPI_INFO_NULL, MPI_ERRORS_RETURN, &none));
  CHECK(none == MPI_COMM_NULL);
  /* Even and odd ranks, at once; then one of each. */
  if (world_size > 1 && !MpichDeviates("MPICH 4.0.2 makes none of other groups than those of the sets")) {
    int ranges[2][3] = {{0, (world_size - 1) / 2 * 2, 2}, {1, (world_size - 2) / 2 * 2 + 1, 2}};
    MPI_Group parts[2];
    for (int i = 0; i < 2; ++i) MPI_Group_range_incl(world, 1, &ranges[i], &parts[i]);
    const int part = world_rank % 2;
    MPI_Comm half, inter, merged;
    CHECK_OK(MPI_Comm_create_from_group(parts[part], "org.example.half", MPI_INFO_NULL, MPI_ERRORS_RETURN, &half));
    TalkOn(half);
    CHECK_OK(MPI_Intercomm_create_from_groups(parts[part], 0, parts[1 - part], 0, "org.example.inter", MPI_INFO_NULL,
                                              MPI_ERRORS_RETURN, &inter));
    int remote, size;
    MPI_Comm_remote_size(inter, &remote);
    MPI_Group_size(parts[1 - part], &size);
    CHECK_EQ(remote, size);
    CHECK_OK(MPI_Intercomm_merge(inter, part, &merged));
    TalkOn(merged);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    for (int i = 0; i < 2; ++i) MPI_Group_free(&parts[i]);
  }
  MPI_Comm_free(&other);
  MPI_Comm_free(&mine);
  MPI_Comm_free(&all);
  MPI_Group_free(&self);
  MPI_Group_free(&world);
}

static int errors_seen;
static void OnError(MPI_Session* session, int* code, ...) {
  (void)session;
  CHECK(*code != MPI_SUCCESS);
  ++errors_seen;
}

static void RefusesWhatIsWrong(MPI_Session session) {
  MPI_Group group = MPI_GROUP_EMPTY, world = GroupOf(session, "mpi://WORLD");
  MPI_Comm comm;
  int number;
  CHECK(MPI_Group_from_session_pset(session, "mpi://NOWHERE", &group) != MPI_SUCCESS);
  CHECK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 1000, &number, NULL) != MPI_SUCCESS);
  CHECK_CLASS(MPI_Comm_create_from_group(MPI_GROUP_NULL, "org.example.bad", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm), MPI_ERR_GROUP);
  /* The session's own handler. */
  MPI_Errhandler handler, got;
  CHECK_OK(MPI_Session_create_errhandler(OnError, &handler));
  CHECK_OK(MPI_Session_set_errhandler(session, handler));
  CHECK_OK(MPI_Session_get_errhandler(session, &got));
  CHECK(got == handler);
  MPI_Errhandler_free(&got);
  CHECK(MPI_Group_from_session_pset(session, "mpi://NOWHERE", &group) != MPI_SUCCESS);
  CHECK_EQ(errors_seen, 1);
  CHECK_OK(MPI_Session_call_errhandler(session, MPI_ERR_OTHER));
  CHECK_EQ(errors_seen, 2);
  MPI_Errhandler_free(&handler);
  MPI_Group_free(&world);
}

int main(void) {
  MPI_Session session, second;
  MPI_Info hints, used;
  int flag;
  char value[MPI_MAX_INFO_VAL + 1];
  const int rounds = MpichDeviates("MPICH 4.0.2 begins only once") ? 1 : 3;
  for (int round = 0; round < rounds; ++round) {
    CHECK_OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    MPI_Initialized(&flag);
    CHECK(!flag); /* sessions are not MPI_Init */
    LooksAtSets(session);
    MakesCommunicators(session);
    errors_seen = 0;
    if (!MpichDeviates("MPICH ends the program whatever the handler of the session")) RefusesWhatIsWrong(session);
    MPI_Info_create(&hints);
    MPI_Info_set(hints, "thread_level", "MPI_THREAD_MULTIPLE");
    CHECK_OK(MPI_Session_init(hints, MPI_ERRORS_RETURN, &second));
    CHECK_OK(MPI_Session_get_info(second, &used));
    MPI_Info_get(used, "thread_level", MPI_MAX_INFO_VAL, value, &flag);
    CHECK(flag);
    if (flag) CHECK_STR(value, "MPI_THREAD_MULTIPLE");
    MPI_Info_free(&used);
    MPI_Info_free(&hints);
    CHECK_OK(MPI_Session_finalize(&session));
    CHECK(session == MPI_SESSION_NULL);
    MakesCommunicators(second);
    CHECK_OK(MPI_Session_finalize(&second));
  }
  return failures != 0;
}
