/* Random nested types: what MPI_Pack makes of them agrees with their type map, worked out beside them; messages and unpacking too. The
 * seed is printed on failure (argument: another seed). */
#include "tests/mpi/check.h"

enum { kSpace = 1 << 16, kMostPlaces = 4000, kMiddle = kSpace / 2 };

static unsigned long state;
static unsigned Random(unsigned below) {
  state = state * 6364136223846793005ul + 1442695040888963407ul;
  return (unsigned)(state >> 33) % below;
}

/* The type map of bytes: `n` displacements in order, with bounds. */
typedef struct {
  int n;
  long *at, lower, upper;
} Map;

static const struct {
  int size;
  MPI_Datatype type;
} kBasic[4] = {{1, MPI_CHAR}, {2, MPI_SHORT}, {4, MPI_INT}, {8, MPI_DOUBLE}};

static void Append(Map* map, const Map* part, long offset) {
  for (int i = 0; i < part->n; i++) map->at[map->n++] = part->at[i] + offset;
  if (part->lower + offset < map->lower) map->lower = part->lower + offset;
  if (part->upper + offset > map->upper) map->upper = part->upper + offset;
}

static MPI_Datatype Make(int depth, Map* map) {
  map->at = malloc(sizeof(long) * kMostPlaces);
  map->n = 0;
  map->lower = 1L << 40;
  map->upper = -(1L << 40);
  MPI_Datatype type;
  if (depth == 0) {
    const int which = Random(4);
    for (int i = 0; i < kBasic[which].size; i++) map->at[map->n++] = i;
    map->lower = 0;
    map->upper = kBasic[which].size;
    MPI_Type_dup(kBasic[which].type, &type);
    return type;
  }
  Map inner;
  MPI_Datatype part = Make(depth - 1, &inner);
  const long extent = inner.upper - inner.lower;
  const int blocks = 1 + Random(3);
  int lengths[3], places[3];
  MPI_Aint bytes[3];
  for (int i = 0; i < blocks; i++) {
    lengths[i] = 1 + Random(2);
    places[i] = i * 3 + (int)Random(2);
    bytes[i] = places[i] * extent + (long)Random(3) * 8;
  }
  switch (Random(6)) {
    case 0:
      MPI_Type_contiguous(blocks, part, &type);
      for (int i = 0; i < blocks; i++) Append(map, &inner, i * extent);
      break;
    case 1:
      MPI_Type_vector(blocks, lengths[0], 3, part, &type);
      for (int i = 0; i < blocks; i++) {
        for (int j = 0; j < lengths[0]; j++) Append(map, &inner, (i * 3 + j) * extent);
      }
      break;
    case 2:
      MPI_Type_indexed(blocks, lengths, places, part, &type);
      for (int i = 0; i < blocks; i++) {
        for (int j = 0; j < lengths[i]; j++) Append(map, &inner, (places[i] + j) * extent);
      }
      break;
    case 3:
      MPI_Type_create_hindexed(blocks, lengths, bytes, part, &type);
      for (int i = 0; i < blocks; i++) {
        for (int j = 0; j < lengths[i]; j++) Append(map, &inner, bytes[i] + j * extent);
      }
      break;
    case 4:
      MPI_Type_create_hvector(blocks, 1, extent + 16, part, &type);
      for (int i = 0; i < blocks; i++) Append(map, &inner, i * (extent + 16));
      break;
    default:
      MPI_Type_create_resized(part, inner.lower - 8, extent + 24, &type);
      Append(map, &inner, 0);
      map->lower = inner.lower - 8;
      map->upper = map->lower + extent + 24;
  }
  MPI_Type_free(&part);
  free(inner.at);
  return type;
}

static unsigned char from[kSpace], into[kSpace], packed[kSpace], wanted[kSpace];

static void Receive(MPI_Datatype type, int count, const Map* map, int n) {
  const long extent = map->upper - map->lower;
  int position = 0;
  memset(into, 0, sizeof into);
  MPI_Unpack(packed, n, &position, into + kMiddle, count, type, MPI_COMM_SELF);
  int touched = 0;
  for (int i = 0; i < kSpace; i++) touched += into[i] != 0;
  CHECK_EQ(touched, n);
  for (int c = 0; c < count; c++) {
    for (int i = 0; i < map->n; i++) CHECK_EQ(into[kMiddle + c * extent + map->at[i]], from[kMiddle + c * extent + map->at[i]]);
  }
  memset(into, 0, sizeof into);
  MPI_Sendrecv(from + kMiddle, count, type, Right(), 0, into + kMiddle, count, type, Left(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < kSpace; i++) touched -= into[i] != 0;
  CHECK_EQ(touched, 0);
  for (int c = 0; c < count; c++) {
    for (int i = 0; i < map->n; i++) CHECK_EQ(into[kMiddle + c * extent + map->at[i]], from[kMiddle + c * extent + map->at[i]]);
  }
}

static void Try(unsigned long seed) {
  state = seed;
  const int before = failures;
  Map map;
  MPI_Datatype type = Make(1 + Random(4), &map);
  MPI_Type_commit(&type);
  const int count = 1 + Random(3);
  const long extent = map.upper - map.lower;
  int size, position = 0, n = 0;
  MPI_Aint lower, actual;
  MPI_Type_size(type, &size);
  MPI_Type_get_extent(type, &lower, &actual);
  CHECK_EQ(size, map.n);
  CHECK_EQ(lower, map.lower);
  CHECK_EQ(actual, extent);
  for (int c = 0; c < count; c++) {
    for (int i = 0; i < map.n; i++) wanted[n++] = from[kMiddle + c * extent + map.at[i]];
  }
  MPI_Pack(from + kMiddle, count, type, packed, sizeof packed, &position, MPI_COMM_SELF);
  CHECK_EQ(position, n);
  CHECK(memcmp(packed, wanted, n) == 0);
  /* A place that occurs twice may only be sent. */
  int overlaps = 0;
  memset(into, 0, sizeof into);
  for (int c = 0; c < count; c++) {
    for (int i = 0; i < map.n; i++) overlaps += into[kMiddle + c * extent + map.at[i]]++;
  }
  if (!overlaps) Receive(type, count, &map, n);
  MPI_Type_free(&type);
  free(map.at);
  if (failures > before) fprintf(stderr, "  ... seed %lu\n", seed);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  for (int i = 0; i < kSpace; i++) from[i] = 1 + i % 251;
  if (argc > 1) {
    Try(strtoul(argv[1], NULL, 0));
  } else {
    for (unsigned long seed = 1; seed <= 200; seed++) Try(seed);
  }
  return End();
}
