/* Messages of one sender and receives of every kind in random order, against the rule (MPI 4.0 section 3.5): in the order of posting each receive
 * has the first message, in the order of sending, that it matches and that no receive before it has. So each knows which it is to get, whenever
 * it comes. Sends are standard, synchronous and blocking ones; receives wait at once (as most programs do), are posted ahead, name a tag
 * or none, have room to spare or too little, are probed for.
 *
 * random_matching [SEED [MESSAGES]] */
#include "tests/mpi/check.h"

enum { kTags = 3, kMostAhead = 12, kMostWaiting = 40, kRoom = 20000 };

static unsigned long long state;

static unsigned Random(unsigned below) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)(state >> 33) % below;
}

typedef struct {
  int tag, bytes, synchronous, taken;
} Message;

static int RandomBytes(void) {
  static const int sizes[] = {0, 1, 8, 16, 17, 40, 56, 100, 4000, 8192, 8193, 20000};
  return sizes[Random(sizeof(sizes) / sizeof(sizes[0]))];
}

static unsigned char ByteOf(int message, int at) { return (unsigned char)(message * 131 + at * 7 + (at >> 8)); }

static void CheckData(const unsigned char* data, int message, int bytes) {
  for (int i = 0; i < bytes; i++) {
    if (data[i] == ByteOf(message, i)) continue;
    REPORT("byte %d of message %d is %d, not %d", i, message, data[i], ByteOf(message, i));
    return;
  }
}

static void Send(const Message* messages, int count) {
  unsigned char(*buffers)[kRoom] = malloc((size_t)count * kRoom);
  MPI_Request* requests = malloc((size_t)count * sizeof(MPI_Request));
  for (int i = 0; i < count; i++) {
    for (int at = 0; at < messages[i].bytes; at++) buffers[i][at] = ByteOf(i, at);
    (messages[i].synchronous ? MPI_Issend : MPI_Isend)(buffers[i], messages[i].bytes, MPI_BYTE, 1, messages[i].tag, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  free(buffers);
  free(requests);
}

static int FirstThatMatches(const Message* messages, int count, int tag) {
  for (int i = 0; i < count; i++) {
    if (!messages[i].taken && (tag == MPI_ANY_TAG || messages[i].tag == tag)) return i;
  }
  return -1;
}

static void CheckReceived(int code, const MPI_Status* status, const Message* messages, int message, int room, const unsigned char* data) {
  const int bytes = messages[message].bytes;
  CHECK_CLASS(code, bytes > room ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
  CHECK_EQ(status->MPI_SOURCE, 0);
  CHECK_EQ(status->MPI_TAG, messages[message].tag);
  if (bytes > room) return;
  int count;
  MPI_Get_count(status, MPI_BYTE, &count);
  CHECK_EQ(count, bytes);
  CheckData(data, message, bytes);
}

static void Receive(Message* messages, int count) {
  typedef struct {
    MPI_Request request;
    int message, room;
    unsigned char data[kRoom];
  } Posted;
  Posted* posted[kMostAhead];
  for (int i = 0; i < kMostAhead; i++) posted[i] = malloc(sizeof(Posted));
  static unsigned char data[kRoom];
  int ahead = 0;
  for (int left = count; left > 0 || ahead > 0;) {
    MPI_Status status;
    if (ahead > 0 && (left == 0 || ahead == kMostAhead || Random(4) == 0)) {
      const int at = (int)Random((unsigned)ahead);
      Posted* const one = posted[at];
      const int code = MPI_Wait(&one->request, &status);
      CheckReceived(code, &status, messages, one->message, one->room, one->data);
      posted[at] = posted[--ahead];
      posted[ahead] = one;
      continue;
    }
    /* Of messages that are sent already, as far as the sender's window goes, or wait would be for one behind those. */
    int tag = (int)Random(kTags + 1);
    if (tag == kTags) tag = MPI_ANY_TAG;
    const int message = FirstThatMatches(messages, count, tag);
    if (message < 0 || message > count - left + kMostWaiting) continue;
    messages[message].taken = 1;
    left--;
    const int source = Random(3) == 0 ? MPI_ANY_SOURCE : 0, room = Random(10) == 0 ? 10 : kRoom;
    if (Random(3) == 0) {
      Posted* const one = posted[ahead++];
      one->message = message;
      one->room = room;
      MPI_Irecv(one->data, room, MPI_BYTE, source, tag, MPI_COMM_WORLD, &one->request);
      continue;
    }
    /* The receives that were posted before have their messages, whichever came; this one has the next, and so has a probe unless it sees theirs. */
    if (ahead == 0 && Random(6) == 0) {
      int bytes;
      MPI_Probe(source, tag, MPI_COMM_WORLD, &status);
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      CHECK_EQ(bytes, messages[message].bytes);
    }
    const int code = MPI_Recv(data, room, MPI_BYTE, source, tag, MPI_COMM_WORLD, &status);
    CheckReceived(code, &status, messages, message, room, data);
  }
  for (int i = 0; i < kMostAhead; i++) free(posted[i]);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  const unsigned long first = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
  const int count = argc > 2 ? atoi(argv[2]) : 500;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (unsigned long seed = first; seed < first + 10 && world_size > 1 && world_rank < 2; seed++) {
    const int before = failures;
    state = seed;
    Message* messages = calloc((size_t)count, sizeof(Message));
    for (int i = 0; i < count; i++) {
      messages[i].tag = (int)Random(kTags);
      messages[i].bytes = RandomBytes();
      messages[i].synchronous = Random(5) == 0;
    }
    if (world_rank == 0) {
      Send(messages, count);
    } else {
      Receive(messages, count);
    }
    free(messages);
    if (failures != before) fprintf(stderr, "rank %d: seed %lu\n", world_rank, seed);
  }
  return End();
}
