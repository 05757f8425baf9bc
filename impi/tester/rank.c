/* The test interpreter of IMPI 0.0, chapter 5: an MPI program whose ranks do what the `rank` lines of a script of
 * weft-impi-test say, in their order.
 *
 *   rank SCRIPT
 *
 * It needs nothing but MPI and C99: `mpicc rank.c -o rank`. README.md has the instructions. The first one that does not
 * hold prints the file, the line and the reason, and ends the job. Scripts are trusted: they come from the user. */
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMostWords = 512, kLongestLine = 16384, kMostNames = 32, kLongestName = 32 };

static const char* file_name;
static int line_number, world_rank;
static char* words[kMostWords];
static int word_count, at; /* of the instruction; the next word */

static void Fail(const char* format, ...) {
  va_list arguments;
  fprintf(stderr, "rank %d: %s:%d: ", world_rank, file_name, line_number);
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  exit(1);
}

static int More(void) { return at < word_count && strcmp(words[at], ":") != 0; }

static const char* Word(void) {
  if (at == word_count) Fail("a word is missing at the end of the line");
  return words[at++];
}

static long long Number(void) {
  const char* word = Word();
  char* end;
  const long long number = strtoll(word, &end, 0);
  if (*word == '\0' || *end != '\0') Fail("'%s' is not a number", word);
  return number;
}

static void ExpectWord(const char* expected) {
  const char* word = Word();
  if (strcmp(word, expected) != 0) Fail("'%s' stands where '%s' has to stand", word, expected);
}

static void ExpectNumber(const char* what, long long actual, long long expected) {
  if (actual != expected) Fail("%s is %lld, and expected is %lld", what, actual, expected);
}

/* --- names of communicators and requests --- */

struct Named {
  char name[kLongestName];
  MPI_Comm comm;
  MPI_Request request;
  void* memory; /* of the request */
};
static struct Named comms[kMostNames], requests[kMostNames];
static int comm_count, request_count;
static MPI_Comm comm; /* that instructions use */

static struct Named* Find(struct Named* all, int count, const char* name) {
  int i;
  for (i = count - 1; i >= 0; i--) {
    if (strcmp(all[i].name, name) == 0) return &all[i];
  }
  Fail("'%s' is not known here", name);
  return NULL;
}

static struct Named* Add(struct Named* all, int* count, const char* name) {
  if (*count == kMostNames) Fail("a script has at most %d names", kMostNames);
  if (strlen(name) >= kLongestName) Fail("the name '%s' is too long", name);
  strcpy(all[*count].name, name);
  return &all[(*count)++];
}

/* --- data: "none", "int 1 2", "long 1", "double 0.5", "byte SEED COUNT" (as pattern:SEED:COUNT), "room COUNT" (ints to
 * receive) --- */

struct Data {
  MPI_Datatype type;
  int count;
  size_t bytes;
  void* memory;
};

static void* Allocate(size_t bytes) {
  void* memory = calloc(1, bytes + 1);
  if (memory == NULL) Fail("no memory for %lu bytes", (unsigned long)bytes);
  return memory;
}

static struct Data TakeData(void) {
  struct Data data = {MPI_BYTE, 0, 0, NULL};
  const char* kind = Word();
  size_t element = 1;
  int i;
  if (strcmp(kind, "none") == 0) {
    data.memory = Allocate(0);
    return data;
  }
  if (strcmp(kind, "byte") == 0) {
    const long long seed = Number(), count = Number();
    data.count = (int)count;
    data.bytes = (size_t)count;
    data.memory = Allocate(data.bytes);
    for (i = 0; i < data.count; i++) ((unsigned char*)data.memory)[i] = (unsigned char)((seed % 251 + i % 251) % 251);
    return data;
  }
  if (strcmp(kind, "int") == 0) {
    data.type = MPI_INT;
    element = sizeof(int);
  } else if (strcmp(kind, "long") == 0) {
    data.type = MPI_LONG;
    element = sizeof(long);
  } else if (strcmp(kind, "double") == 0) {
    data.type = MPI_DOUBLE;
    element = sizeof(double);
  } else {
    Fail("'%s' is not a kind of data; these are none, byte, int, long and double", kind);
  }
  for (i = at; i < word_count && strcmp(words[i], ":") != 0; i++) data.count++;
  data.bytes = element * (size_t)data.count;
  data.memory = Allocate(data.bytes);
  for (i = 0; i < data.count; i++) {
    if (data.type == MPI_INT) {
      ((int*)data.memory)[i] = (int)Number();
    } else if (data.type == MPI_LONG) {
      ((long*)data.memory)[i] = (long)Number();
    } else {
      ((double*)data.memory)[i] = atof(Word());
    }
  }
  return data;
}

/* Memory for what has to be `data`, filled with something else. */
static void* RoomFor(const struct Data* data) {
  void* memory = Allocate(data->bytes);
  memset(memory, 0x5a, data->bytes);
  return memory;
}

static void Compare(const struct Data* expected, const void* came) {
  size_t i;
  for (i = 0; i < expected->bytes; i++) {
    if (((const unsigned char*)came)[i] != ((const unsigned char*)expected->memory)[i])
      Fail("byte %lu of what came (in this machine's form) differs", (unsigned long)i);
  }
}

static void CompareStatus(MPI_Status* status, int source, int tag, const struct Data* data) {
  int count;
  if (source != MPI_ANY_SOURCE) ExpectNumber("MPI_SOURCE", status->MPI_SOURCE, source);
  if (tag != MPI_ANY_TAG) ExpectNumber("MPI_TAG", status->MPI_TAG, tag);
  MPI_Get_count(status, data->type, &count);
  ExpectNumber("MPI_Get_count", count, data->count);
}

/* A rank or tag; -1: any. */
static int Source(void) {
  const int source = (int)Number();
  return source == -1 ? MPI_ANY_SOURCE : source;
}
static int Tag(void) {
  const int tag = (int)Number();
  return tag == -1 ? MPI_ANY_TAG : tag;
}

/* Operations on ints that do not commute: of the ranks in order, the first or the last value. */
static void Left(void* first, void* second, int* count, MPI_Datatype* type) {
  (void)type;
  memcpy(second, first, (size_t)*count * sizeof(int));
}
static void Right(void* first, void* second, int* count, MPI_Datatype* type) {
  (void)first;
  (void)second;
  (void)count;
  (void)type;
}

static MPI_Op Operation(void) {
  const char* name = Word();
  MPI_Op made = MPI_OP_NULL;
  if (strcmp(name, "sum") == 0) return MPI_SUM;
  if (strcmp(name, "max") == 0) return MPI_MAX;
  if (strcmp(name, "left") == 0) MPI_Op_create(Left, 0, &made);
  if (strcmp(name, "right") == 0) MPI_Op_create(Right, 0, &made);
  if (made == MPI_OP_NULL) Fail("'%s' is not an operation; these are sum, max, left and right", name);
  return made;
}

/* --- instructions --- */

static void Send(int (*send)(const void*, int, MPI_Datatype, int, int, MPI_Comm)) {
  const int to = (int)Number(), tag = (int)Number();
  const struct Data data = TakeData();
  send(data.memory, data.count, data.type, to, tag, comm);
  free(data.memory);
}
static void DoSend(void) { Send((int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm))MPI_Send); }
static void DoSsend(void) { Send((int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm))MPI_Ssend); }
static void DoRsend(void) { Send((int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm))MPI_Rsend); }
static void DoBsend(void) {
  int size = 1 << 20;
  void *buffer = Allocate((size_t)size), *detached;
  MPI_Buffer_attach(buffer, size);
  Send((int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm))MPI_Bsend);
  MPI_Buffer_detach(&detached, &size);
  free(buffer);
}

static void Start(int synchronous) {
  struct Named* named = Add(requests, &request_count, Word());
  const int to = (int)Number(), tag = (int)Number();
  const struct Data data = TakeData();
  named->memory = data.memory;
  (synchronous ? MPI_Issend : MPI_Isend)(data.memory, data.count, data.type, to, tag, comm, &named->request);
}
static void DoIsend(void) { Start(0); }
static void DoIssend(void) { Start(1); }
static void DoCancel(void) { MPI_Cancel(&Find(requests, request_count, Word())->request); }

/* wait NAME [cancelled yes|no] */
static void DoWait(void) {
  struct Named* named = Find(requests, request_count, Word());
  MPI_Status status;
  int cancelled;
  MPI_Wait(&named->request, &status);
  free(named->memory);
  if (!More()) return;
  ExpectWord("cancelled");
  MPI_Test_cancelled(&status, &cancelled);
  ExpectNumber("MPI_Test_cancelled", cancelled != 0, strcmp(Word(), "yes") == 0);
}

static void DoRecv(void) {
  const int source = Source(), tag = Tag();
  const struct Data data = TakeData();
  void* came = RoomFor(&data);
  MPI_Status status;
  MPI_Recv(came, data.count, data.type, source, tag, comm, &status);
  CompareStatus(&status, source, tag, &data);
  Compare(&data, came);
  free(came);
  free(data.memory);
}

static void DoProbe(void) {
  const int source = Source(), tag = Tag();
  const struct Data data = TakeData();
  MPI_Status status;
  MPI_Probe(source, tag, comm, &status);
  CompareStatus(&status, source, tag, &data);
  free(data.memory);
}
/* iprobe FROM TAG yes|no */
static void DoIprobe(void) {
  const int source = Source(), tag = Tag();
  int found;
  MPI_Iprobe(source, tag, comm, &found, MPI_STATUS_IGNORE);
  ExpectNumber("MPI_Iprobe", found != 0, strcmp(Word(), "yes") == 0);
}

static void DoBarrier(void) { MPI_Barrier(comm); }

static int IsRank(int rank) {
  int own;
  MPI_Comm_rank(comm, &own);
  return own == rank;
}

/* bcast ROOT DATA: the root has it, the others get it. */
static void DoBcast(void) {
  const int root = (int)Number();
  const struct Data data = TakeData();
  void* memory = RoomFor(&data);
  if (IsRank(root)) memcpy(memory, data.memory, data.bytes);
  MPI_Bcast(memory, data.count, data.type, root, comm);
  Compare(&data, memory);
  free(memory);
  free(data.memory);
}

/* What a rank gives, and behind ":" what it gets. */
struct Both {
  struct Data gives, gets;
  void* came;
};
static struct Both TakeBoth(void) {
  struct Both both;
  both.gives = TakeData();
  ExpectWord(":");
  both.gets = TakeData();
  both.came = RoomFor(&both.gets);
  return both;
}
static void EndBoth(struct Both* both) {
  Compare(&both->gets, both->came);
  free(both->came);
  free(both->gives.memory);
  free(both->gets.memory);
}
static int Size(void) {
  int size;
  MPI_Comm_size(comm, &size);
  return size;
}

static void DoReduce(void) { /* reduce ROOT OP DATA : DATA; at others than the root: : none */
  const int root = (int)Number();
  const MPI_Op operation = Operation();
  struct Both both = TakeBoth();
  MPI_Reduce(both.gives.memory, both.came, both.gives.count, both.gives.type, operation, root, comm);
  EndBoth(&both);
}
static void DoAllreduce(void) {
  const MPI_Op operation = Operation();
  struct Both both = TakeBoth();
  MPI_Allreduce(both.gives.memory, both.came, both.gives.count, both.gives.type, operation, comm);
  EndBoth(&both);
}
static void DoScan(void) {
  const MPI_Op operation = Operation();
  struct Both both = TakeBoth();
  MPI_Scan(both.gives.memory, both.came, both.gives.count, both.gives.type, operation, comm);
  EndBoth(&both);
}
static void DoReduceScatter(void) { /* the same count for each rank */
  const MPI_Op operation = Operation();
  struct Both both = TakeBoth();
  const int size = Size();
  int i, *counts = Allocate((size_t)size * sizeof(int));
  for (i = 0; i < size; i++) counts[i] = both.gets.count;
  MPI_Reduce_scatter(both.gives.memory, both.came, counts, both.gives.type, operation, comm);
  free(counts);
  EndBoth(&both);
}
static void DoGather(void) {
  const int root = (int)Number();
  struct Both both = TakeBoth();
  MPI_Gather(both.gives.memory, both.gives.count, both.gives.type, both.came, both.gets.count / Size(), both.gets.type,
             root, comm);
  EndBoth(&both);
}
static void DoScatter(void) {
  const int root = (int)Number();
  struct Both both = TakeBoth();
  MPI_Scatter(both.gives.memory, both.gives.count / Size(), both.gives.type, both.came, both.gets.count, both.gets.type,
              root, comm);
  EndBoth(&both);
}
static void DoAllgather(void) {
  struct Both both = TakeBoth();
  MPI_Allgather(both.gives.memory, both.gives.count, both.gives.type, both.came, both.gets.count / Size(),
                both.gets.type, comm);
  EndBoth(&both);
}
static void DoAlltoall(void) {
  struct Both both = TakeBoth();
  MPI_Alltoall(both.gives.memory, both.gives.count / Size(), both.gives.type, both.came, both.gets.count / Size(),
               both.gets.type, comm);
  EndBoth(&both);
}

/* Counts and displacements of equal parts, for the calls with vectors. */
struct Parts {
  int *counts, *displacements;
};
static struct Parts PartsOf(int count) {
  const int size = Size();
  struct Parts parts;
  int i;
  parts.counts = Allocate((size_t)size * sizeof(int));
  parts.displacements = Allocate((size_t)size * sizeof(int));
  for (i = 0; i < size; i++) {
    parts.counts[i] = count / size;
    parts.displacements[i] = i * parts.counts[i];
  }
  return parts;
}
static void EndParts(struct Parts parts) {
  free(parts.counts);
  free(parts.displacements);
}
static void DoGatherv(void) {
  const int root = (int)Number();
  struct Both both = TakeBoth();
  struct Parts parts = PartsOf(both.gets.count);
  MPI_Gatherv(both.gives.memory, both.gives.count, both.gives.type, both.came, parts.counts, parts.displacements,
              both.gets.type, root, comm);
  EndParts(parts);
  EndBoth(&both);
}
static void DoScatterv(void) {
  const int root = (int)Number();
  struct Both both = TakeBoth();
  struct Parts parts = PartsOf(both.gives.count);
  MPI_Scatterv(both.gives.memory, parts.counts, parts.displacements, both.gives.type, both.came, both.gets.count,
               both.gets.type, root, comm);
  EndParts(parts);
  EndBoth(&both);
}
static void DoAllgatherv(void) {
  struct Both both = TakeBoth();
  struct Parts parts = PartsOf(both.gets.count);
  MPI_Allgatherv(both.gives.memory, both.gives.count, both.gives.type, both.came, parts.counts, parts.displacements,
                 both.gets.type, comm);
  EndParts(parts);
  EndBoth(&both);
}
static void DoAlltoallv(void) {
  struct Both both = TakeBoth();
  struct Parts gives = PartsOf(both.gives.count), gets = PartsOf(both.gets.count);
  MPI_Alltoallv(both.gives.memory, gives.counts, gives.displacements, both.gives.type, both.came, gets.counts,
                gets.displacements, both.gets.type, comm);
  EndParts(gives);
  EndParts(gets);
  EndBoth(&both);
}

/* --- communicators --- */

static void DoUse(void) { comm = Find(comms, comm_count, Word())->comm; }
static MPI_Comm* NewComm(void) {
  struct Named* named = Add(comms, &comm_count, Word());
  named->comm = MPI_COMM_NULL;
  return &named->comm;
}
static void DoDup(void) { MPI_Comm_dup(comm, NewComm()); }
/* split NAME COLOUR KEY; -1: MPI_UNDEFINED */
static void DoSplit(void) {
  MPI_Comm* made = NewComm();
  const int colour = (int)Number(), key = (int)Number();
  MPI_Comm_split(comm, colour == -1 ? MPI_UNDEFINED : colour, key, made);
}
/* create NAME RANKS... */
static void DoCreate(void) {
  MPI_Comm* made = NewComm();
  int ranks[kMostWords], count = 0;
  MPI_Group all, group;
  while (More()) ranks[count++] = (int)Number();
  MPI_Comm_group(comm, &all);
  MPI_Group_incl(all, count, ranks, &group);
  MPI_Comm_create(comm, group, made);
  MPI_Group_free(&group);
  MPI_Group_free(&all);
}
/* intercomm NAME LOCAL-COMMUNICATOR LEADER REMOTE-LEADER TAG, over the current communicator */
static void DoIntercomm(void) {
  MPI_Comm* made = NewComm();
  const MPI_Comm local = Find(comms, comm_count, Word())->comm;
  const int leader = (int)Number(), remote = (int)Number(), tag = (int)Number();
  MPI_Intercomm_create(local, leader, comm, remote, tag, made);
}
/* merge NAME HIGH */
static void DoMerge(void) {
  MPI_Comm* made = NewComm();
  MPI_Intercomm_merge(comm, (int)Number(), made);
}
static void DoFree(void) { MPI_Comm_free(&Find(comms, comm_count, Word())->comm); }
static void DoSize(void) { ExpectNumber("MPI_Comm_size", Size(), Number()); }
static void DoRank(void) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  ExpectNumber("MPI_Comm_rank", rank, Number());
}
/* attribute NAME VALUE, least NAME VALUE */
static long long Attribute(void) {
  const char* name = Word();
  int key = MPI_KEYVAL_INVALID, found = 0, *value = NULL;
  if (strcmp(name, "MPI_TAG_UB") == 0) key = MPI_TAG_UB;
#ifdef IMPI_CLIENT_SIZE
  if (strcmp(name, "IMPI_CLIENT_SIZE") == 0) key = IMPI_CLIENT_SIZE;
  if (strcmp(name, "IMPI_CLIENT_COLOR") == 0) key = IMPI_CLIENT_COLOR;
  if (strcmp(name, "IMPI_HOST_SIZE") == 0) key = IMPI_HOST_SIZE;
  if (strcmp(name, "IMPI_HOST_COLOR") == 0) key = IMPI_HOST_COLOR;
#endif
  if (key == MPI_KEYVAL_INVALID) Fail("mpi.h does not define %s", name);
  MPI_Comm_get_attr(comm, key, &value, &found);
  if (!found) Fail("%s has no value", name);
  return *value;
}
static void DoAttribute(void) {
  const long long value = Attribute();
  ExpectNumber("the attribute", value, Number());
}
/* pack-size DATA : BYTES, and pack DATA : byte ... */
static void DoPackSize(void) {
  const struct Data data = TakeData();
  int size;
  MPI_Pack_size(data.count, data.type, comm, &size);
  ExpectWord(":");
  ExpectNumber("MPI_Pack_size", size, Number());
  free(data.memory);
}

static const struct {
  const char* name;
  void (*carry_out)(void);
} kInstructions[] = {
    {"send", DoSend},
    {"ssend", DoSsend},
    {"rsend", DoRsend},
    {"bsend", DoBsend},
    {"isend", DoIsend},
    {"issend", DoIssend},
    {"cancel", DoCancel},
    {"wait", DoWait},
    {"recv", DoRecv},
    {"probe", DoProbe},
    {"iprobe", DoIprobe},
    {"barrier", DoBarrier},
    {"bcast", DoBcast},
    {"reduce", DoReduce},
    {"allreduce", DoAllreduce},
    {"scan", DoScan},
    {"gather", DoGather},
    {"scatter", DoScatter},
    {"allgather", DoAllgather},
    {"alltoall", DoAlltoall},
    {"gatherv", DoGatherv},
    {"scatterv", DoScatterv},
    {"use", DoUse},
    {"dup", DoDup},
    {"split", DoSplit},
    {"create", DoCreate},
    {"intercomm", DoIntercomm},
    {"merge", DoMerge},
    {"free", DoFree},
    {"size", DoSize},
    {"rank-is", DoRank},
    {"attribute", DoAttribute},
    {"pack-size", DoPackSize},
    {"allgatherv", DoAllgatherv},
    {"alltoallv", DoAlltoallv},
    {"reduce-scatter", DoReduceScatter},
};

static void CarryOut(void) {
  const char* name = Word();
  size_t i;
  for (i = 0; i < sizeof kInstructions / sizeof kInstructions[0]; i++) {
    if (strcmp(name, kInstructions[i].name) != 0) continue;
    kInstructions[i].carry_out();
    if (at < word_count) Fail("'%s' is too much", words[at]);
    return;
  }
  Fail("'%s' is not an instruction", name);
}

/* Whether the line is for this rank; then its words from the instruction on are in `words`. */
static int TakeLine(char* line) {
  char *word, *end;
  word_count = at = 0;
  for (word = strtok(line, " \t\r\n"); word != NULL && *word != '#'; word = strtok(NULL, " \t\r\n")) {
    if (word_count == kMostWords) Fail("a line has at most %d words", kMostWords);
    words[word_count++] = word;
  }
  if (word_count < 3 || strcmp(words[0], "rank") != 0) return 0;
  at = 2;
  return strcmp(words[1], "*:") == 0 || (strtol(words[1], &end, 10) == world_rank && strcmp(end, ":") == 0);
}

int main(int argc, char** argv) {
  static char line[kLongestLine];
  struct Named* world;
  FILE* file;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  comm = MPI_COMM_WORLD;
  world = Add(comms, &comm_count, "world");
  world->comm = MPI_COMM_WORLD;
  Add(comms, &comm_count, "self")->comm = MPI_COMM_SELF;
  file_name = argc == 2 ? argv[1] : "(no script: the form is rank SCRIPT)";
  file = fopen(file_name, "r");
  if (file == NULL) Fail("the script cannot be read");
  while (fgets(line, sizeof line, file) != NULL) {
    line_number++;
    if (strchr(line, '\n') == NULL && !feof(file)) Fail("the line is longer than %d characters", kLongestLine - 2);
    if (TakeLine(line)) CarryOut();
  }
  fclose(file);
  MPI_Finalize();
  return 0;
}
