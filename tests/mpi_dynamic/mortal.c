/* mortal ROLE FILE [NUMBER]: jobs that meet or spawn, step by step, of which any may be somebody's last. Each step is said.
 *
 *   accept, connect   meet at a port whose name is in FILE, talk, merge, use a window, part; twice
 *   cross NUMBER      two jobs, 0 and 1, that accept each other and connect to each other at once, in two threads
 *   alone             accepts where nobody comes
 *   serve, ask        as accept and connect, but by a name that is published
 *   spawn NUMBER      spawns so many children and parts from them, twice
 *   grow NUMBER       the same, and each of these jobs spawns so many more first
 *
 * DEATH="ROLE RANK STEP MICROSECONDS VICTIM": that rank, so long after it came to that step, leaves the file DEATH_MARK and kills "self", "proxy" (which
 * started it), "mpiexec", or the mpiexec of that number. PATIENCE: the seconds for which accepts wait.
 *
 * MPI errors are said and are no failures: a job goes on with what it has and ends in order, and has no more descriptors in the end than before it met
 * anybody, but for those of a window that a death keeps it from freeing. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/mpi/check.h"

enum { kRounds = 2, kLook = 2000 /* microseconds */, kMostLooks = 2500, kMostWords = 64 };

static const char *role, *file_name;

/* --- deaths --- */

static struct {
  char role[kMostWords], step[kMostWords], victim[kMostWords];
  int rank, microseconds;
} death = {.rank = -1};
static atomic_int g_has_come; /* to the step; two threads may take steps */

static int ParentOf(int pid) {
  char path[kMostWords];
  int parent = -1;
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  FILE* file = fopen(path, "r");
  if (file == NULL) return -1;
  if (fscanf(file, "%*d (%*[^)]) %*c %d", &parent) != 1) parent = -1;
  fclose(file);
  return parent;
}

/* Whoever's launcher is gone has another parent, which is nobody's to kill. */
static int IsLauncher(int pid) {
  char path[kMostWords], name[kMostWords] = "";
  snprintf(path, sizeof path, "/proc/%d/comm", pid);
  FILE* file = fopen(path, "r");
  if (file == NULL) return 0;
  if (fgets(name, sizeof name, file) == NULL) name[0] = 0;
  fclose(file);
  return strcmp(name, "mpiexec\n") == 0;
}

static void* Kill(void* unused) {
  if (death.microseconds != 0) usleep((useconds_t)death.microseconds);
  int target = atoi(death.victim);
  if (strcmp(death.victim, "self") == 0) target = getpid();
  if (strcmp(death.victim, "proxy") == 0) target = getppid();
  if (strcmp(death.victim, "mpiexec") == 0) target = ParentOf(getppid());
  if (target != getpid() && !IsLauncher(target)) return unused;
  close(open(getenv("DEATH_MARK"), O_CREAT | O_WRONLY, 0600));
  kill(target, SIGKILL);
  return unused;
}

static void ReadDeath(void) {
  const char* text = getenv("DEATH");
  if (text == NULL) return;
  if (sscanf(text, "%63s %d %63s %d %63s", death.role, &death.rank, death.step, &death.microseconds, death.victim) != 5) {
    fprintf(stderr, "DEATH is '%s', not 'ROLE RANK STEP MICROSECONDS VICTIM'\n", text);
    exit(2);
  }
}

static void Step(const char* name) {
  const char* rank = getenv("PMI_RANK");
  const int mine = rank == NULL ? 0 : atoi(rank);
  printf("%s %d %s\n", role, mine, name);
  fflush(stdout);
  if (mine != death.rank || strcmp(role, death.role) != 0 || strcmp(name, death.step) != 0) return;
  if (atomic_exchange(&g_has_come, 1)) return;
  if (death.microseconds == 0) {
    Kill(NULL);
    return;
  }
  pthread_t thread;
  if (pthread_create(&thread, NULL, Kill, NULL) == 0) pthread_detach(thread);
}

static void StepOf(const char* name, int round) {
  char text[kMostWords];
  snprintf(text, sizeof text, "%s.%d", name, round);
  Step(text);
}

/* --- errors --- */

static int Good(int code, const char* call) {
  if (code == MPI_SUCCESS) return 1;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length;
  MPI_Error_string(code, text, &length);
  printf("%s %d: %s: %s\n", role, world_rank, call, text);
  fflush(stdout);
  return 0;
}
#define GOOD(call) Good(call, #call)

/* Whether it went well at all of this job. */
static int AllOf(MPI_Comm comm, int good) {
  int all = 0;
  CHECK_OK(MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, comm));
  return all;
}

/* In order where that is possible. */
static void Part(MPI_Comm* comm) {
  if (*comm == MPI_COMM_NULL || GOOD(MPI_Comm_disconnect(comm))) return;
  CHECK_OK(MPI_Comm_free(comm));
}

/* --- descriptors --- */

static int CountDescriptors(int tell) {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  for (struct dirent* entry; (entry = readdir(directory)) != NULL; ++count) {
    char target[256] = "";
    if (readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1) < 0) continue;
    /* The RNIC makes a set when there are many connections at a time, and keeps it. */
    if (strcmp(target, "anon_inode:[eventpoll]") == 0) --count;
    if (tell) fprintf(stderr, "rank %d: descriptor %s: %s\n", world_rank, entry->d_name, target);
  }
  closedir(directory);
  return count;
}

/* Processes that a window names which could not be freed, a descriptor each (pidfd_open(2)). */
static int g_named_for_good;

/* What is closed is closed as messages are looked for. */
static void ExpectDescriptors(int most) {
  int now = 0;
  for (int look = 0; look < kMostLooks && (now = CountDescriptors(0)) > most; ++look) {
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    usleep(kLook);
  }
  if (now <= most) return;
  REPORT("%d descriptors, %d before it met anybody", now, most);
  CountDescriptors(1);
}

/* --- meetings --- */

static void WriteFile(const char* name, const char* text) {
  char draft[4096];
  snprintf(draft, sizeof draft, "%s.draft", name);
  FILE* file = fopen(draft, "w");
  fputs(text, file);
  fclose(file);
  rename(draft, name);
}

/* Leaves `text` empty where nobody writes the file. */
static void ReadFile(const char* name, char* text) {
  FILE* file = NULL;
  for (int look = 0; look < kMostLooks && (file = fopen(name, "r")) == NULL; ++look) usleep(kLook);
  if (file == NULL) return;
  if (fgets(text, MPI_MAX_PORT_NAME, file) == NULL) text[0] = 0;
  fclose(file);
}

static MPI_Info Patience(void) {
  MPI_Info info;
  const char* seconds = getenv("PATIENCE");
  MPI_Info_create(&info);
  MPI_Info_set(info, "timeout", seconds != NULL ? seconds : "3");
  return info;
}

/* Everyone of one side writes to everyone of the other, and all learn a sum. */
static int Talk(MPI_Comm inter) {
  int size, one = 1, sum = 0, good = 1;
  MPI_Comm_remote_size(inter, &size);
  int in[16], out = world_rank;
  MPI_Request requests[32];
  for (int i = 0; i < 2 * size; ++i) requests[i] = MPI_REQUEST_NULL;
  for (int i = 0; i < size; ++i) {
    good &= GOOD(MPI_Isend(&out, 1, MPI_INT, i, 7, inter, &requests[i]));
    good &= GOOD(MPI_Irecv(&in[i], 1, MPI_INT, i, 7, inter, &requests[size + i]));
  }
  good &= GOOD(MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE));
  good &= GOOD(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter));
  if (good) CHECK_EQ(sum, size);
  return good;
}

/* Whether all of this job have the window. After a death some may and some not: who has it would wait in MPI_Win_free for those who have not, and keeps it. */
static int AllHave(MPI_Comm group, MPI_Comm of_window, int good) {
  if (AllOf(group, good)) return 1;
  int here, all;
  MPI_Comm_size(group, &here);
  MPI_Comm_size(of_window, &all);
  if (good) g_named_for_good = all - here;
  return 0;
}

/* `group`: this job's part of it. */
static int UseWindow(MPI_Comm group, MPI_Comm merged) {
  static int memory[32];
  int rank, size;
  MPI_Win window;
  MPI_Comm_rank(merged, &rank);
  MPI_Comm_size(merged, &size);
  if (!AllHave(group, merged, GOOD(MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, merged, &window)))) return 0;
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  int good = GOOD(MPI_Win_fence(0, window));
  for (int i = 0; i < size; ++i) good &= GOOD(MPI_Put(&rank, 1, MPI_INT, i, rank, 1, MPI_INT, window));
  good &= GOOD(MPI_Win_fence(0, window));
  return GOOD(MPI_Win_free(&window)) && good;
}

/* One that always goes through the RNIC, where the other may go through memory of the host. `comm` has `group` and maybe another job. */
static int UseDynamicWindow(MPI_Comm group, MPI_Comm comm) {
  static int memory[32];
  MPI_Aint mine, all[32];
  int rank, size;
  MPI_Win window;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Get_address(memory, &mine);
  if (!AllHave(group, comm, GOOD(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &window)))) return 0;
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  int good = GOOD(MPI_Win_attach(window, memory, sizeof memory));
  good &= GOOD(MPI_Allgather(&mine, 1, MPI_AINT, all, 1, MPI_AINT, comm));
  const int know = good; /* to whom to write; the others may, and wait in the fences for all */
  good &= GOOD(MPI_Win_fence(0, window));
  for (int i = 0; know && i < size; ++i) good &= GOOD(MPI_Put(&rank, 1, MPI_INT, i, MPI_Aint_add(all[i], 4 * rank), 1, MPI_INT, window));
  good &= GOOD(MPI_Win_fence(0, window));
  (void)GOOD(MPI_Win_detach(window, memory));
  return GOOD(MPI_Win_free(&window)) && good;
}

/* Whether to go on. */
static int Meet(MPI_Comm group, const char* port, int accepts, int round) {
  MPI_Comm inter = MPI_COMM_NULL, merged = MPI_COMM_NULL;
  MPI_Info patience = Patience();
  StepOf("meets", round);
  int good = accepts ? GOOD(MPI_Comm_accept(port, patience, 0, group, &inter)) : GOOD(MPI_Comm_connect(port, MPI_INFO_NULL, 0, group, &inter));
  MPI_Info_free(&patience);
  StepOf("met", round);
  good = AllOf(group, good);
  if (good) {
    StepOf("talks", round);
    good = AllOf(group, Talk(inter));
  }
  if (good) {
    StepOf("merges", round);
    good = AllOf(group, GOOD(MPI_Intercomm_merge(inter, !accepts, &merged)));
  }
  if (good) {
    StepOf("puts", round);
    good = AllOf(group, UseWindow(group, merged)) && AllOf(group, UseDynamicWindow(group, merged));
  }
  StepOf("parts", round);
  Part(&merged);
  StepOf("disconnects", round);
  Part(&inter);
  StepOf("parted", round);
  return AllOf(group, good);
}

static void MeetRounds(MPI_Comm group, const char* port, int accepts) {
  for (int round = 0; round < kRounds && Meet(group, port, accepts, round); ++round) {
  }
}

static void ByFile(int accepts) {
  char port[MPI_MAX_PORT_NAME] = "";
  if (world_rank == 0 && accepts) {
    CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
    WriteFile(file_name, port);
  }
  if (world_rank == 0 && !accepts) ReadFile(file_name, port);
  MeetRounds(MPI_COMM_WORLD, port, accepts);
  if (world_rank == 0 && accepts) CHECK_OK(MPI_Close_port(port));
}

static void ByName(int serves) {
  char port[MPI_MAX_PORT_NAME] = "";
  const char* service = "mortals";
  int published = 0;
  if (world_rank == 0 && serves) {
    CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
    Step("publishes");
    published = GOOD(MPI_Publish_name(service, MPI_INFO_NULL, port));
  }
  Step("looks");
  for (int look = 0; world_rank == 0 && !serves && look < 200; ++look) {
    if (MPI_Lookup_name(service, MPI_INFO_NULL, port) == MPI_SUCCESS) break;
    usleep(10 * kLook);
  }
  MeetRounds(MPI_COMM_WORLD, port, serves);
  if (published) {
    Step("unpublishes");
    (void)GOOD(MPI_Unpublish_name(service, MPI_INFO_NULL, port));
  }
  if (world_rank == 0 && serves) CHECK_OK(MPI_Close_port(port));
}

/* --- both at once --- */

static struct {
  MPI_Comm comm, accepted, connected;
  char own[MPI_MAX_PORT_NAME], theirs[MPI_MAX_PORT_NAME];
} cross;

static void Accepts(void) {
  MPI_Info patience = Patience();
  Step("accepts");
  const int good = AllOf(MPI_COMM_WORLD, GOOD(MPI_Comm_accept(cross.own, patience, 0, MPI_COMM_WORLD, &cross.accepted)));
  MPI_Info_free(&patience);
  Step("accepted");
  if (good) (void)AllOf(MPI_COMM_WORLD, Talk(cross.accepted));
}

static void* Connects(void* unused) {
  Step("connects");
  const int good = AllOf(cross.comm, GOOD(MPI_Comm_connect(cross.theirs, MPI_INFO_NULL, 0, cross.comm, &cross.connected)));
  Step("connected");
  if (good) (void)AllOf(cross.comm, Talk(cross.connected));
  return unused;
}

static void AtOnce(int number) {
  char mine[4096], other[4096];
  snprintf(mine, sizeof mine, "%s.%d", file_name, number);
  snprintf(other, sizeof other, "%s.%d", file_name, 1 - number);
  MPI_Comm_dup(MPI_COMM_WORLD, &cross.comm);
  cross.accepted = cross.connected = MPI_COMM_NULL;
  if (world_rank == 0) {
    CHECK_OK(MPI_Open_port(MPI_INFO_NULL, cross.own));
    WriteFile(mine, cross.own);
    ReadFile(other, cross.theirs);
  }
  pthread_t thread;
  pthread_create(&thread, NULL, Connects, NULL);
  Accepts();
  pthread_join(thread, NULL);
  Step("disconnects");
  MPI_Comm* made[] = {&cross.accepted, &cross.connected};
  for (int i = 0; i < 2; ++i) Part(made[i ^ number]); /* in the same order at both */
  Step("parted");
  if (world_rank == 0) CHECK_OK(MPI_Close_port(cross.own));
  CHECK_OK(MPI_Comm_free(&cross.comm));
}

/* --- nobody comes; spawn --- */

static void Alone(void) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm inter = MPI_COMM_NULL;
  if (world_rank == 0) CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
  MPI_Info patience = Patience();
  Step("waits");
  (void)GOOD(MPI_Comm_accept(port, patience, 0, MPI_COMM_WORLD, &inter));
  CHECK(inter == MPI_COMM_NULL);
  MPI_Info_free(&patience);
  if (world_rank == 0) CHECK_OK(MPI_Close_port(port));
}

static void Spawns(char* program, const char* what, const char* number) {
  char *words[] = {(char*)what, (char*)file_name, (char*)number, NULL};
  for (int round = 0; round < kRounds; ++round) {
    MPI_Comm children = MPI_COMM_NULL;
    StepOf("spawns", round);
    int good = GOOD(MPI_Comm_spawn(program, words, atoi(number), MPI_INFO_NULL, world_size - 1, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
    StepOf("spawned", round);
    good = AllOf(MPI_COMM_WORLD, good);
    if (good) (void)AllOf(MPI_COMM_WORLD, Talk(children));
    StepOf("disconnects", round);
    Part(&children);
    StepOf("parted", round);
  }
}

static void Child(void) {
  MPI_Comm parent;
  MPI_Comm_get_parent(&parent);
  if (parent == MPI_COMM_NULL) return;
  MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
  Step("talks");
  (void)AllOf(MPI_COMM_WORLD, Talk(parent));
  Step("parts");
  Part(&parent);
}

static void Play(int argc, char** argv) {
  const char* number = argc > 3 ? argv[3] : "0";
  if (strcmp(role, "accept") == 0) ByFile(1);
  if (strcmp(role, "connect") == 0) ByFile(0);
  if (strcmp(role, "serve") == 0) ByName(1);
  if (strcmp(role, "ask") == 0) ByName(0);
  if (strncmp(role, "cross", 5) == 0) AtOnce(atoi(number));
  if (strcmp(role, "alone") == 0) Alone();
  if (strcmp(role, "spawn") == 0) Spawns(argv[0], "child", number);
  if (strcmp(role, "grow") == 0) Spawns(argv[0], "branch", number);
  if (strcmp(role, "branch") == 0) Spawns(argv[0], "child", number);
  Child();
}

/* What stays of the first of each: connections within the job, the RNIC, a place to listen. */
static int WarmUp(void) {
  char port[MPI_MAX_PORT_NAME];
  (void)UseWindow(MPI_COMM_WORLD, MPI_COMM_WORLD);
  (void)UseDynamicWindow(MPI_COMM_WORLD, MPI_COMM_WORLD);
  int out[16] = {0}, in[16];
  MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
  MPI_Open_port(MPI_INFO_NULL, port);
  MPI_Close_port(port);
  MPI_Barrier(MPI_COMM_WORLD);
  /* Where one has nobody to write to, RNIC and wire begin to listen when the first of another job comes. */
  return CountDescriptors(0) + (world_size == 1 ? 2 : 0);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  role = argv[1];
  file_name = argv[2];
  ReadDeath();
  Step("starts");
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  Step("initialised");
  const int before = WarmUp();
  Step("begins");
  Play(argc, argv);
  Step("checks");
  MPI_Barrier(MPI_COMM_WORLD); /* connections within the job are all there */
  ExpectDescriptors(before + g_named_for_good);
  Step("finalizes");
  MPI_Finalize();
  Step("ends");
  return failures != 0;
}
