/* MPI_T beyond tests/mpi_abi/tool.c: what is refused, enumerations, and of Weft's library the unexpected queue, one-sided operations, events. */
#include "tests/mpi/check.h"

/* Every one of them before MPI_T_init_thread, and nothing is written. */
static void NotInitialized(void) {
  int number = 77, length = 8;
  char text[8] = "before";
  MPI_T_pvar_handle variable = MPI_T_PVAR_HANDLE_NULL;
  MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
  MPI_T_cvar_handle control = MPI_T_CVAR_HANDLE_NULL;
  CHECK_EQ(MPI_T_cvar_handle_free(&control), MPI_T_ERR_NOT_INITIALIZED);
  CHECK_EQ(MPI_T_pvar_handle_free(session, &variable), MPI_T_ERR_NOT_INITIALIZED);
  CHECK_EQ(MPI_T_pvar_session_free(&session), MPI_T_ERR_NOT_INITIALIZED);
  CHECK_EQ(MPI_T_category_get_num_events(0, &number), MPI_T_ERR_NOT_INITIALIZED);
  CHECK_EQ(MPI_T_category_get_num(&number), MPI_T_ERR_NOT_INITIALIZED);
  CHECK_EQ(MPI_T_event_get_num(&number), MPI_T_ERR_NOT_INITIALIZED);
  CHECK_EQ(MPI_T_source_get_num(&number), MPI_T_ERR_NOT_INITIALIZED);
  CHECK_EQ(MPI_T_enum_get_info(MPI_T_ENUM_NULL, &number, text, &length), MPI_T_ERR_NOT_INITIALIZED);
  CHECK_EQ(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
  CHECK_EQ(number, 77);
  CHECK_STR(text, "before");
}

static void NullHandles(void) {
  CHECK_EQ(MPI_T_cvar_handle_free(NULL), MPI_T_ERR_INVALID);
  CHECK_EQ(MPI_T_pvar_handle_free(MPI_T_PVAR_SESSION_NULL, NULL), MPI_T_ERR_INVALID);
  CHECK_EQ(MPI_T_pvar_session_free(NULL), MPI_T_ERR_INVALID);
  int number = 77;
  CHECK_EQ(MPI_T_category_get_num_events(-1, &number), MPI_T_ERR_INVALID_INDEX);
  CHECK_EQ(number, 77);
}

/* A variable with an enumeration is a number, and its value one of the items. */
static void Choices(void) {
  int count, choices = 0;
  MPI_T_cvar_get_num(&count);
  for (int i = 0; i < count; i++) {
    char name[256], item[256];
    int length = sizeof name, items = -1, value, elements, found = 0, number;
    MPI_Datatype type;
    MPI_T_enum choice;
    MPI_T_cvar_handle handle;
    CHECK_EQ(MPI_T_cvar_get_info(i, name, &length, NULL, &type, &choice, NULL, NULL, NULL, NULL), MPI_SUCCESS);
    if (choice == MPI_T_ENUM_NULL) continue;
    choices++;
    CHECK_EQ(type, MPI_INT);
    length = sizeof item;
    CHECK_EQ(MPI_T_enum_get_info(choice, &items, item, &length), MPI_SUCCESS);
    CHECK_EQ(MPI_T_cvar_handle_alloc(i, NULL, &handle, &elements), MPI_SUCCESS);
    CHECK_EQ(elements, 1);
    CHECK_EQ(MPI_T_cvar_read(handle, &value), MPI_SUCCESS);
    for (int k = 0; k < items; k++) {
      length = sizeof item;
      CHECK_EQ(MPI_T_enum_get_item(choice, k, &number, item, &length), MPI_SUCCESS);
      if (number != value) continue;
      found++;
      const char* set = getenv(name);
      if (set != NULL && *set != '\0') CHECK_STR(item, set);
    }
    CHECK_EQ(found, 1);
    CHECK_EQ(MPI_T_enum_get_item(choice, items, &number, item, &length), MPI_T_ERR_INVALID_ITEM);
    MPI_T_cvar_handle_free(&handle);
  }
  int index;
  if (MPI_T_cvar_get_index("WEFT_MPI_LLP", &index) == MPI_SUCCESS) CHECK(choices >= 5);
}

static MPI_T_pvar_session session;
static MPI_T_pvar_handle Variable(const char* name, int class) {
  MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
  int index, one;
  CHECK_EQ(MPI_T_pvar_get_index(name, class, &index), MPI_SUCCESS);
  CHECK_EQ(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_TIMER, &one), MPI_T_ERR_INVALID_NAME);
  CHECK_EQ(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &one), MPI_SUCCESS);
  return handle;
}
static unsigned long long Value(MPI_T_pvar_handle handle) {
  unsigned long long value = 77;
  CHECK_EQ(MPI_T_pvar_read(session, handle, &value), MPI_SUCCESS);
  return value;
}

enum { kTag = 4711 };
static int heard, dropped, freed;
static char place; /* what callbacks get */

static void OnMessage(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety, void* data) {
  struct {
    int source, tag;
    unsigned context;
    unsigned long long bytes;
  } whole;
  int source = -1, tag = -1, of = -1;
  unsigned long long bytes = 0;
  MPI_Count time = 0, now = 0;
  (void)registration;
  CHECK_EQ(safety, MPI_T_CB_REQUIRE_MPI_RESTRICTED);
  CHECK(data == &place);
  CHECK_EQ(MPI_T_event_read(instance, 0, &source), MPI_SUCCESS);
  CHECK_EQ(MPI_T_event_read(instance, 1, &tag), MPI_SUCCESS);
  CHECK_EQ(MPI_T_event_read(instance, 3, &bytes), MPI_SUCCESS);
  CHECK_EQ(MPI_T_event_read(instance, 4, &bytes), MPI_T_ERR_INVALID_INDEX);
  CHECK_EQ(MPI_T_event_copy(instance, &whole), MPI_SUCCESS);
  CHECK_EQ(MPI_T_event_get_source(instance, &of), MPI_SUCCESS);
  CHECK_EQ(MPI_T_event_get_timestamp(instance, &time), MPI_SUCCESS);
  CHECK_EQ(MPI_T_source_get_timestamp(of, &now), MPI_SUCCESS);
  CHECK(time > 0 && time <= now);
  CHECK(whole.source == source && whole.tag == tag && whole.bytes == bytes);
  if (tag != kTag) return;
  CHECK_EQ(source, Left());
  CHECK_EQ(bytes, 5 * sizeof(int));
  heard++;
}
static void OnDropped(MPI_Count count, MPI_T_event_registration registration, int source, MPI_T_cb_safety safety, void* data) {
  (void)registration, (void)safety;
  CHECK_EQ(source, 0);
  CHECK(data == &place);
  dropped += (int)count;
}
static void OnFreed(MPI_T_event_registration registration, MPI_T_cb_safety safety, void* data) {
  (void)registration, (void)safety;
  CHECK(data == &place);
  freed++;
}

/* One message to the right comes before its receive, since one that was sent later is there. */
static void OneUnexpected(void) {
  int five[5] = {0};
  MPI_Request requests[2];
  MPI_Isend(five, 5, MPI_INT, Right(), kTag, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(NULL, 0, MPI_INT, Right(), 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Recv(NULL, 0, MPI_INT, Left(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Probe(Left(), kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}
static void ReceiveIt(void) {
  int five[5];
  MPI_Recv(five, 5, MPI_INT, Left(), kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* High-water marks: each handle has its own, which setting back another does not lower. */
static void Marks(void) {
  MPI_T_pvar_handle level = Variable("unexpected_queue_length", MPI_T_PVAR_CLASS_LEVEL);
  MPI_T_pvar_handle first = Variable("unexpected_queue_longest", MPI_T_PVAR_CLASS_HIGHWATERMARK);
  unsigned long long value = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const unsigned long long before = Value(level);
  CHECK(Value(first) >= before);
  OneUnexpected();
  OneUnexpected();
  const unsigned long long most = Value(first);
  CHECK(most >= 2);
  MPI_T_pvar_handle second = Variable("unexpected_queue_longest", MPI_T_PVAR_CLASS_HIGHWATERMARK);
  CHECK(Value(second) >= 2); /* two wait now */
  ReceiveIt();
  ReceiveIt();
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(Value(second) >= 2);
  CHECK_EQ(MPI_T_pvar_readreset(session, second, &value), MPI_SUCCESS);
  CHECK(value >= 2);
  CHECK(Value(second) < value || Value(level) >= value);
  CHECK(Value(first) >= most);
  CHECK_EQ(MPI_T_pvar_reset(session, first), MPI_SUCCESS);
  CHECK(Value(first) < most || Value(level) >= most);
  value = 1000;
  CHECK_EQ(MPI_T_pvar_write(session, first, &value), MPI_SUCCESS);
  CHECK_EQ(Value(first), 1000);
  CHECK(Value(second) < 1000);
  CHECK_EQ(MPI_T_pvar_start(session, first), MPI_T_ERR_PVAR_NO_STARTSTOP);
  CHECK_EQ(MPI_T_pvar_handle_free(session, &first), MPI_SUCCESS);
  CHECK_EQ(MPI_T_pvar_handle_free(session, &second), MPI_SUCCESS);
}

static void Unexpected(void) {
  MPI_T_pvar_handle level = Variable("unexpected_queue_length", MPI_T_PVAR_CLASS_LEVEL);
  MPI_T_pvar_handle counter = Variable("unexpected_messages", MPI_T_PVAR_CLASS_COUNTER);
  unsigned long long value = 5;
  int index, number = 1, kinds = -1;
  char name[64], help[400];
  int name_length = sizeof name, help_length = sizeof help, bind;
  MPI_Datatype types[4];
  MPI_Aint places[4];
  MPI_T_enum names;
  MPI_Info info;
  MPI_T_event_registration wants, restricted;
  CHECK_EQ(MPI_T_event_get_num(&kinds), MPI_SUCCESS);
  CHECK(kinds >= 2);
  CHECK_EQ(MPI_T_event_get_index("unexpected_message", &index), MPI_SUCCESS);
  CHECK_EQ(MPI_T_event_get_index("of_no_meaning", &number), MPI_T_ERR_INVALID_NAME);
  CHECK_EQ(MPI_T_event_get_info(index, name, &name_length, NULL, types, places, &number, &names, &info, help, &help_length, &bind), MPI_SUCCESS);
  CHECK_EQ(number, 4); /* of which there was room for one */
  CHECK_EQ(MPI_T_event_get_info(index, NULL, NULL, NULL, types, places, &number, NULL, NULL, NULL, NULL, NULL), MPI_SUCCESS);
  CHECK(types[3] == MPI_UNSIGNED_LONG_LONG && places[3] == 16);
  CHECK_EQ(MPI_T_event_get_info(kinds, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
  MPI_Info_free(&info);
  CHECK_EQ(MPI_T_enum_get_info(names, &number, NULL, NULL), MPI_SUCCESS);
  CHECK_EQ(number, 4);

  CHECK_EQ(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &restricted), MPI_SUCCESS);
  CHECK_EQ(MPI_T_event_register_callback(restricted, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, &place, OnMessage), MPI_SUCCESS);
  /* One that wants to call anything is not called, and told so. */
  CHECK_EQ(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &wants), MPI_SUCCESS);
  CHECK_EQ(MPI_T_event_register_callback(wants, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, &place, OnMessage), MPI_SUCCESS);
  CHECK_EQ(MPI_T_event_set_dropped_handler(wants, OnDropped), MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD); /* nobody sends before all listen */
  OneUnexpected();
  CHECK_EQ(heard, 1);
  CHECK(dropped >= 1);
  CHECK(Value(level) >= 1);
  CHECK(Value(counter) >= 1);
  value = Value(level);
  ReceiveIt();
  CHECK(Value(level) < value || value > 1);
  CHECK_EQ(MPI_T_pvar_reset(session, level), MPI_T_ERR_PVAR_NO_WRITE);
  CHECK_EQ(MPI_T_pvar_write(session, level, &value), MPI_T_ERR_PVAR_NO_WRITE);
  CHECK_EQ(MPI_T_pvar_readreset(session, level, &value), MPI_T_ERR_PVAR_NO_ATOMIC);
  CHECK_EQ(MPI_T_pvar_start(session, level), MPI_T_ERR_PVAR_NO_STARTSTOP);
  CHECK_EQ(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
  CHECK_EQ(MPI_T_pvar_readreset(session, counter, &value), MPI_SUCCESS);
  CHECK(value >= 1);
  value = 1000;
  CHECK_EQ(MPI_T_pvar_write(session, counter, &value), MPI_SUCCESS);
  CHECK(Value(counter) >= 1000);

  CHECK_EQ(MPI_T_event_handle_free(wants, &place, OnFreed), MPI_SUCCESS);
  CHECK_EQ(freed, 1);
  CHECK_EQ(MPI_T_event_handle_free(wants, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
  CHECK_EQ(MPI_T_event_register_callback(restricted, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, NULL, NULL), MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  OneUnexpected();
  ReceiveIt();
  Marks();
  CHECK_EQ(heard, 1);
  CHECK_EQ(MPI_T_event_read((MPI_T_event_instance)&place, 0, &number), MPI_T_ERR_INVALID_HANDLE);
  CHECK_EQ(MPI_T_event_handle_free(restricted, NULL, NULL), MPI_SUCCESS);
}

static void OneSided(void) {
  const char* const names[] = {"puts", "gets", "accumulates", "get_accumulates", "fetch_and_ops", "compare_and_swaps"};
  MPI_T_pvar_handle kinds[6];
  long *memory, one = 1, got = 0, none = 0;
  MPI_Win win;
  MPI_Request request;
  for (int i = 0; i < 6; i++) kinds[i] = Variable(names[i], MPI_T_PVAR_CLASS_COUNTER);
  MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Win_lock_all(0, win);
  MPI_Put(&one, 1, MPI_LONG, Right(), 0, 1, MPI_LONG, win);
  MPI_Rput(&one, 1, MPI_LONG, Right(), 0, 1, MPI_LONG, win, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Win_flush_all(win);
  MPI_Get(&got, 1, MPI_LONG, Right(), 0, 1, MPI_LONG, win);
  MPI_Win_flush_all(win);
  for (int i = 0; i < 3; i++) MPI_Accumulate(&one, 1, MPI_LONG, Right(), 0, 1, MPI_LONG, MPI_SUM, win);
  for (int i = 0; i < 4; i++) MPI_Get_accumulate(&one, 1, MPI_LONG, &got, 1, MPI_LONG, Right(), 0, 1, MPI_LONG, MPI_SUM, win);
  for (int i = 0; i < 5; i++) MPI_Fetch_and_op(&one, &got, MPI_LONG, Right(), 0, MPI_SUM, win);
  for (int i = 0; i < 6; i++) MPI_Compare_and_swap(&one, &none, &got, MPI_LONG, Right(), 0, win);
  MPI_Win_unlock_all(win);
  for (int i = 0; i < 6; i++) CHECK_EQ(Value(kinds[i]), i == 0 ? 2 : i == 1 ? 1 : (unsigned)i + 1);
  MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  int provided, index;
  const int mpich = MpichDeviates("it looks at handles before whether MPI_T is initialized");
  if (!mpich) NotInitialized();
  CHECK_EQ(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), MPI_SUCCESS);
  if (!mpich) {
    NullHandles();
    Choices();
  }
  Begin(&argc, &argv);
  CHECK_EQ(MPI_T_pvar_session_create(&session), MPI_SUCCESS);
  if (MPI_T_pvar_get_index("unexpected_queue_length", MPI_T_PVAR_CLASS_LEVEL, &index) == MPI_SUCCESS) {
    Unexpected();
    OneSided();
  } else {
    CHECK(mpich);
  }
  CHECK_EQ(MPI_T_pvar_session_free(&session), MPI_SUCCESS);
  MPI_T_event_registration forgotten;
  if (!mpich) CHECK_EQ(MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, &forgotten), MPI_SUCCESS);
  CHECK_EQ(MPI_T_finalize(), MPI_SUCCESS);
  return End();
}
