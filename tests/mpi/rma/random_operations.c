/* Operations of all kinds on windows of all kinds, chosen by a seed: random_operations [SEED [ROUNDS]]. What they leave behind does not
 * depend on their order, so that every rank knows from a serial model what is to be where after each round. */
#include <stddef.h>
#include <stdint.h>

#include "tests/mpi/check.h"

enum { kSlots = 24, kSlotBytes = 64, kSums = 4, kMostOps = 12, kMostRanks = 16, kBulk = 5000 };

/* What each rank has in its window. Pieces of `slots` have one origin in a round; the rest is for all of them at once. */
typedef struct {
  unsigned char slots[kSlots][kSlotBytes];
  long longs[kSums];
  double doubles[kSums];
  int32_t ints[kSums];
  uint16_t shorts[kSums];
  unsigned char chars[8];
  struct {
    int value, place;
  } largest[kSums];
  long double long_doubles[2];
  long counter, swapped, exclusive[2];
  unsigned char odd[4 * kSums + 1]; /* 32-bit numbers from odd[1] on, at an odd address */
  int32_t bulk[kBulk];
} Memory;

enum Kind { kPut, kGet, kPutStrided, kGetStrided, kSum, kFetch, kSwap, kExclusive, kBulkSum, kKinds };
enum Element { kLong, kDouble, kInt, kShort, kChar, kPair, kLongDouble, kOdd, kElements };
enum Epoch { kFence, kStart, kLockAll, kShared, kExclusively, kEpochs };

typedef struct {
  enum Kind kind;
  enum Element element;
  int origin, target, slot, value;
} Operation;

static uint64_t state;
static unsigned Random(unsigned below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 33) % below;
}

static Memory* memory; /* this rank's */
static Memory model[kMostRanks];
static MPI_Datatype strided; /* half of a slot: every other 4 bytes */
static MPI_Win win;
static int is_dynamic;
static MPI_Aint bases[kMostRanks];
static MPI_Aint At(int target, size_t offset) { return (is_dynamic ? bases[target] : 0) + (MPI_Aint)offset; }

/* --- the model --- */

static unsigned char SlotByte(const Operation* op, int i) { return (unsigned char)(op->value * 7 + i * 3 + op->origin); }

static void ApplySum(const Operation* op, Memory* to) {
  int32_t number;
  switch (op->element) {
    case kLong: to->longs[op->slot] += op->value; break;
    case kDouble: to->doubles[op->slot] += op->value; break;
    case kInt: to->ints[op->slot] ^= op->value; break;
    case kShort: to->shorts[op->slot] |= (uint16_t)(1u << op->value % 16); break;
    case kChar: to->chars[op->slot] = (unsigned char)(to->chars[op->slot] + op->value); break;
    case kPair:
      if (op->value > to->largest[op->slot].value ||
          (op->value == to->largest[op->slot].value && op->origin < to->largest[op->slot].place)) {
        to->largest[op->slot].value = op->value;
        to->largest[op->slot].place = op->origin;
      }
      break;
    case kLongDouble: to->long_doubles[op->slot % 2] += op->value; break;
    default:
      memcpy(&number, to->odd + 1 + 4 * op->slot, 4);
      number += op->value;
      memcpy(to->odd + 1 + 4 * op->slot, &number, 4);
  }
}

static void ApplyToModel(const Operation* op) {
  Memory* to = &model[op->target];
  switch (op->kind) {
    case kPut:
      for (int i = 0; i < kSlotBytes; i++) to->slots[op->slot][i] = SlotByte(op, i);
      break;
    case kPutStrided:
      for (int i = 0; i < kSlotBytes / 2; i++) to->slots[op->slot][i / 4 * 8 + i % 4] = SlotByte(op, i);
      break;
    case kSum: ApplySum(op, to); break;
    case kFetch: to->counter += op->value; break;
    case kSwap: to->swapped += 1; break;
    case kExclusive:
      to->exclusive[0] += op->value;
      to->exclusive[1] += op->value;
      break;
    case kBulkSum:
      for (int i = 0; i < kBulk; i++) to->bulk[i] += op->value + i;
      break;
    default: break;
  }
}

/* --- the operations --- */

static unsigned char buffers[kMostOps][kSlotBytes];
static union {
  long l;
  double d;
  int32_t i;
  uint16_t s;
  unsigned char c;
  struct {
    int value, place;
  } pair;
  long double ld;
} numbers[kMostOps];
static int32_t bulk[kMostOps][kBulk];
static long fetched[kMostOps];

static void Sum(const Operation* op, int k) {
  const int t = op->target, s = op->slot;
  void* from = &numbers[k];
  switch (op->element) {
    case kLong:
      numbers[k].l = op->value;
      MPI_Accumulate(from, 1, MPI_LONG, t, At(t, offsetof(Memory, longs) + 8 * s), 1, MPI_LONG, MPI_SUM, win);
      break;
    case kDouble:
      numbers[k].d = op->value;
      MPI_Accumulate(from, 1, MPI_DOUBLE, t, At(t, offsetof(Memory, doubles) + 8 * s), 1, MPI_DOUBLE, MPI_SUM, win);
      break;
    case kInt:
      numbers[k].i = op->value;
      MPI_Accumulate(from, 1, MPI_INT32_T, t, At(t, offsetof(Memory, ints) + 4 * s), 1, MPI_INT32_T, MPI_BXOR, win);
      break;
    case kShort:
      numbers[k].s = (uint16_t)(1u << op->value % 16);
      MPI_Accumulate(from, 1, MPI_UINT16_T, t, At(t, offsetof(Memory, shorts) + 2 * s), 1, MPI_UINT16_T, MPI_BOR, win);
      break;
    case kChar:
      numbers[k].c = (unsigned char)op->value;
      MPI_Accumulate(from, 1, MPI_UNSIGNED_CHAR, t, At(t, offsetof(Memory, chars) + s), 1, MPI_UNSIGNED_CHAR, MPI_SUM, win);
      break;
    case kPair:
      numbers[k].pair.value = op->value;
      numbers[k].pair.place = op->origin;
      MPI_Accumulate(from, 1, MPI_2INT, t, At(t, offsetof(Memory, largest) + 8 * s), 1, MPI_2INT, MPI_MAXLOC, win);
      break;
    case kLongDouble:
      numbers[k].ld = op->value;
      MPI_Accumulate(from, 1, MPI_LONG_DOUBLE, t, At(t, offsetof(Memory, long_doubles) + sizeof(long double) * (s % 2)), 1,
                     MPI_LONG_DOUBLE, MPI_SUM, win);
      break;
    default:
      numbers[k].i = op->value;
      MPI_Accumulate(from, 1, MPI_INT32_T, t, At(t, offsetof(Memory, odd) + 1 + 4 * s), 1, MPI_INT32_T, MPI_SUM, win);
  }
}

/* In an epoch of any kind, of which it is not the end. */
static void Issue(const Operation* op, int k) {
  const int t = op->target;
  const MPI_Aint slot = At(t, offsetof(Memory, slots) + kSlotBytes * op->slot);
  switch (op->kind) {
    case kPut:
    case kPutStrided:
      for (int i = 0; i < kSlotBytes; i++) buffers[k][i] = SlotByte(op, i);
      if (op->kind == kPut) MPI_Put(buffers[k], kSlotBytes, MPI_BYTE, t, slot, kSlotBytes, MPI_BYTE, win);
      else MPI_Put(buffers[k], kSlotBytes / 2, MPI_BYTE, t, slot, 1, strided, win);
      break;
    case kGet: MPI_Get(buffers[k], kSlotBytes, MPI_BYTE, t, slot, kSlotBytes, MPI_BYTE, win); break;
    case kGetStrided: MPI_Get(buffers[k], kSlotBytes / 2, MPI_BYTE, t, slot, 1, strided, win); break;
    case kSum: Sum(op, k); break;
    case kFetch:
      numbers[k].l = op->value;
      MPI_Fetch_and_op(&numbers[k].l, &fetched[k], MPI_LONG, t, At(t, offsetof(Memory, counter)), MPI_SUM, win);
      break;
    case kBulkSum:
      for (int i = 0; i < kBulk; i++) bulk[k][i] = op->value + i;
      MPI_Accumulate(bulk[k], kBulk, MPI_INT32_T, t, At(t, offsetof(Memory, bulk)), kBulk, MPI_INT32_T, MPI_SUM, win);
      break;
    default: break;
  }
}

/* What a Get brought is what was there before the round: nobody else had that slot. */
static void CheckFetched(const Operation* op, int k, long sum_of_round) {
  const unsigned char* slot = model[op->target].slots[op->slot];
  if (op->kind == kGet) CHECK(memcmp(buffers[k], slot, kSlotBytes) == 0);
  if (op->kind == kGetStrided) {
    for (int i = 0; i < kSlotBytes / 2; i++) CHECK_EQ(buffers[k][i], slot[i / 4 * 8 + i % 4]);
  }
  if (op->kind == kFetch) {
    const long before = model[op->target].counter;
    CHECK(fetched[k] >= before && fetched[k] + op->value <= before + sum_of_round);
  }
}

/* Those that need passive target epochs of their own. */
static void Swap(const Operation* op) {
  long seen = 0, next, found;
  MPI_Win_lock(MPI_LOCK_SHARED, op->target, 0, win);
  for (;;) {
    next = seen + 1;
    MPI_Compare_and_swap(&next, &seen, &found, MPI_LONG, op->target, At(op->target, offsetof(Memory, swapped)), win);
    MPI_Win_flush(op->target, win);
    if (found == seen) break;
    seen = found;
  }
  MPI_Win_unlock(op->target, win);
}

static void ChangeExclusively(const Operation* op) {
  long pair[2];
  const MPI_Aint at = At(op->target, offsetof(Memory, exclusive));
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, op->target, 0, win);
  MPI_Get(pair, 2, MPI_LONG, op->target, at, 2, MPI_LONG, win);
  MPI_Win_flush(op->target, win);
  CHECK_EQ(pair[0], pair[1]);
  pair[0] += op->value;
  pair[1] += op->value;
  MPI_Put(&pair[0], 1, MPI_LONG, op->target, at, 1, MPI_LONG, win);
  MPI_Put(&pair[1], 1, MPI_LONG, op->target, at + 8, 1, MPI_LONG, win);
  MPI_Win_unlock(op->target, win);
}

static int IsPassiveOnly(const Operation* op) { return op->kind == kSwap || op->kind == kExclusive; }

static void Run(const Operation* ops, int count, enum Epoch epoch) {
  MPI_Group group;
  if (epoch == kFence) MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
  if (epoch == kLockAll) MPI_Win_lock_all(0, win);
  if (epoch == kStart) {
    MPI_Win_get_group(win, &group);
    MPI_Win_post(group, 0, win);
    MPI_Win_start(group, 0, win);
  }
  for (int k = 0; k < count; k++) {
    if (IsPassiveOnly(&ops[k])) continue;
    if (epoch == kShared || epoch == kExclusively) {
      MPI_Win_lock(epoch == kShared ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, ops[k].target, 0, win);
    }
    Issue(&ops[k], k);
    if (epoch == kShared || epoch == kExclusively) MPI_Win_unlock(ops[k].target, win);
    if (epoch == kLockAll && k % 3 == 0) MPI_Win_flush(ops[k].target, win);
    if (epoch == kLockAll && k % 5 == 0) MPI_Win_flush_local_all(win);
  }
  if (epoch == kFence) MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  if (epoch == kLockAll) MPI_Win_unlock_all(win);
  if (epoch == kStart) {
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    MPI_Group_free(&group);
  }
  for (int k = 0; k < count; k++) {
    if (ops[k].kind == kSwap) Swap(&ops[k]);
    if (ops[k].kind == kExclusive) ChangeExclusively(&ops[k]);
  }
}

/* --- rounds --- */

static void CheckMemory(int round) {
  const Memory* expected = &model[world_rank];
  const int before = failures;
  MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, win);
  CHECK(memcmp(memory->slots, expected->slots, sizeof memory->slots) == 0);
  for (int i = 0; i < kSums; i++) {
    CHECK_EQ(memory->longs[i], expected->longs[i]);
    CHECK_EQ(memory->doubles[i], expected->doubles[i]);
    CHECK_EQ(memory->ints[i], expected->ints[i]);
    CHECK_EQ(memory->shorts[i], expected->shorts[i]);
    CHECK_EQ(memory->chars[i], expected->chars[i]);
    CHECK_EQ(memory->largest[i].value, expected->largest[i].value);
    CHECK_EQ(memory->largest[i].place, expected->largest[i].place);
    CHECK_EQ(memory->long_doubles[i % 2], expected->long_doubles[i % 2]);
  }
  CHECK(memcmp(memory->odd, expected->odd, sizeof memory->odd) == 0);
  CHECK_EQ(memory->counter, expected->counter);
  CHECK_EQ(memory->swapped, expected->swapped);
  CHECK_EQ(memory->exclusive[0], expected->exclusive[0]);
  CHECK_EQ(memory->exclusive[1], expected->exclusive[1]);
  CHECK(memcmp(memory->bulk, expected->bulk, sizeof memory->bulk) == 0);
  MPI_Win_unlock(world_rank, win);
  if (failures != before) fprintf(stderr, "rank %d: round %d is where it begins\n", world_rank, round);
}

static void Round(int round) {
  static Operation ops[kMostRanks][kMostOps];
  int counts[kMostRanks], owner[kMostRanks][kSlots];
  long sums[kMostRanks] = {0};
  const enum Epoch epoch = (enum Epoch)Random(kEpochs);
  memset(owner, -1, sizeof owner);
  for (int origin = 0; origin < world_size; origin++) {
    counts[origin] = 1 + (int)Random(kMostOps);
    for (int k = 0; k < counts[origin]; k++) {
      Operation* op = &ops[origin][k];
      op->kind = (enum Kind)Random(kKinds);
      if (op->kind == kBulkSum && Random(3) != 0) op->kind = kSum;
      op->origin = origin;
      op->target = (int)Random((unsigned)world_size);
      op->value = 1 + (int)Random(100);
      op->element = (enum Element)Random(kElements);
      op->slot = (int)Random(kSums);
      if (op->kind <= kGetStrided) {
        op->slot = (int)Random(kSlots);
        if (owner[op->target][op->slot] >= 0) op->kind = kFetch;
        else owner[op->target][op->slot] = origin;
      }
      if (op->kind == kFetch) sums[op->target] += op->value;
    }
  }
  Run(ops[world_rank], counts[world_rank], epoch);
  for (int k = 0; k < counts[world_rank]; k++) CheckFetched(&ops[world_rank][k], k, sums[ops[world_rank][k].target]);
  for (int origin = 0; origin < world_size; origin++) {
    for (int k = 0; k < counts[origin]; k++) ApplyToModel(&ops[origin][k]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CheckMemory(round);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Not one of MPI's: of MPI_Win_create, over a part of what MPI_Alloc_mem returned, at a place of each rank's own. */
enum { kOverAllocMem = 1000 };

static void CreateOverAllocMem(void** own) {
  const size_t before = 64 * (size_t)(1 + world_rank);
  MPI_Alloc_mem((MPI_Aint)(before + sizeof(Memory) + 64), MPI_INFO_NULL, own);
  memory = (Memory*)((char*)*own + before);
  MPI_Win_create(memory, sizeof(Memory), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
}

static void OnWindow(int flavor, int rounds) {
  void* own = NULL;
  is_dynamic = flavor == MPI_WIN_FLAVOR_DYNAMIC;
  if (flavor == MPI_WIN_FLAVOR_ALLOCATE) {
    MPI_Win_allocate(sizeof(Memory), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  } else if (flavor == MPI_WIN_FLAVOR_SHARED) {
    MPI_Win_allocate_shared(sizeof(Memory), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  } else if (flavor == kOverAllocMem) {
    CreateOverAllocMem(&own);
  } else {
    own = aligned_alloc(64, (sizeof(Memory) + 63) / 64 * 64);
    memory = own;
    if (is_dynamic) {
      MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
      MPI_Win_attach(win, own, sizeof(Memory));
      MPI_Get_address(own, &bases[world_rank]);
      MPI_Allgather(MPI_IN_PLACE, 0, MPI_AINT, bases, 1, MPI_AINT, MPI_COMM_WORLD);
    } else {
      MPI_Win_create(own, sizeof(Memory), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    }
  }
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, world_rank, 0, win);
  memset(memory, 0, sizeof *memory);
  MPI_Win_unlock(world_rank, win);
  memset(model, 0, sizeof model);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int round = 0; round < rounds; round++) Round(round);
  if (is_dynamic) MPI_Win_detach(win, own);
  MPI_Win_free(&win);
  if (flavor == kOverAllocMem) {
    MPI_Free_mem(own);
  } else {
    free(own);
  }
}

/* How the targets are reached, where the library says so: for the test that chooses the ways. */
static void PrintWaysOfWindow(const char* what) {
  char ways[MPI_MAX_INFO_VAL + 1];
  int found;
  MPI_Info info;
  MPI_Win_get_info(win, &info);
  MPI_Info_get(info, "weft_ways", MPI_MAX_INFO_VAL, ways, &found);
  if (found) printf("rank %d:%s %s\n", world_rank, what, ways);
  MPI_Info_free(&info);
  MPI_Win_free(&win);
}

static void PrintWays(void) {
  void* some;
  MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &some, &win);
  PrintWaysOfWindow("");
  CreateOverAllocMem(&some);
  PrintWaysOfWindow(" over MPI_Alloc_mem:");
  MPI_Free_mem(some);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  const unsigned long seed = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
  const int rounds = argc > 2 ? atoi(argv[2]) : 12;
  if (world_size > kMostRanks) MPI_Abort(MPI_COMM_WORLD, 2);
  state = seed * 977 + 12345;
  MPI_Type_vector(kSlotBytes / 8, 4, 8, MPI_BYTE, &strided);
  MPI_Type_commit(&strided);
  if (argc > 1) PrintWays();
  const int flavors[] = {MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_CREATE, kOverAllocMem, MPI_WIN_FLAVOR_SHARED, MPI_WIN_FLAVOR_DYNAMIC};
  for (int i = 0; i < 5; i++) OnWindow(flavors[i], rounds);
  MPI_Type_free(&strided);
  if (failures != 0 && world_rank == 0) fprintf(stderr, "again: random_operations %lu %d\n", seed, rounds);
  return End();
}
