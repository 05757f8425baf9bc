/* Random views, offsets, memory, hints and calls, compared byte by byte with a model of the file that each rank has; in half of the runs the
 * disk fails on purpose (faulty_disk.h), and now and then it is full.
 * random [RUNS [FIRST_SEED]], or RANDOM_FILE_RUNS in the environment: a run that fails prints its seed. */
#define _GNU_SOURCE
#include "io.h"

#include "faulty_disk.h"

enum { kMostRanks = 8, kMostBlocks = 24, kFile = 6 << 20, kCalls = 12, kMostInts = 600, kEnoughRuns = 8 /* that some have faults */ };

static unsigned char model[kFile], whole[kFile];
static long model_size;

/* The same numbers at all ranks. */
static unsigned long long state;
static int Random(int low, int high) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return low + (int)((state >> 33) % (unsigned long long)(high - low + 1));
}

/* A tile of the file: blocks of ints, each of a rank or of nobody. */
static struct {
  int displacement, extent; /* bytes */
  int blocks, owner[kMostBlocks], begin[kMostBlocks], ints[kMostBlocks];
  int ints_of[kMostRanks];
} tile;

static void MakeTile(void) {
  int at = Random(0, 3);
  memset(&tile, 0, sizeof tile);
  tile.displacement = 4 * Random(0, 5) + Random(0, 3);
  tile.blocks = Random(world_size, kMostBlocks);
  const int longest = Random(0, 2) == 0 ? 30 : 4;
  for (int i = 0; i < tile.blocks; i++) {
    /* Each rank has one block at least. */
    tile.owner[i] = i < world_size ? i : Random(-1, world_size - 1);
    tile.begin[i] = at;
    tile.ints[i] = Random(1, longest);
    at += tile.ints[i] + (Random(0, 2) == 0 ? Random(0, 3) : 0);
    if (tile.owner[i] >= 0) tile.ints_of[tile.owner[i]] += tile.ints[i];
  }
  tile.extent = 4 * (at + Random(0, 3));
}

/* Where int `offset` of the view of `rank` is. */
static long Place(int rank, long offset) {
  long whole = offset / tile.ints_of[rank];
  int rest = (int)(offset % tile.ints_of[rank]);
  for (int i = 0; i < tile.blocks; i++) {
    if (tile.owner[i] != rank) continue;
    if (rest < tile.ints[i]) return tile.displacement + whole * tile.extent + 4 * (tile.begin[i] + rest);
    rest -= tile.ints[i];
  }
  return -1;
}

static MPI_Datatype FileType(void) {
  int lengths[kMostBlocks], displacements[kMostBlocks], n = 0;
  MPI_Datatype blocks, resized;
  for (int i = 0; i < tile.blocks; i++) {
    if (tile.owner[i] != world_rank) continue;
    lengths[n] = tile.ints[i];
    displacements[n++] = tile.begin[i];
  }
  MPI_Type_indexed(n, lengths, displacements, MPI_INT, &blocks);
  MPI_Type_create_resized(blocks, 0, tile.extent, &resized);
  MPI_Type_commit(&resized);
  MPI_Type_free(&blocks);
  return resized;
}

static MPI_Info RandomHints(void) {
  static const char* const choices[] = {"automatic", "enable", "disable"};
  char number[16];
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "romio_cb_write", choices[Random(0, 2)]);
  MPI_Info_set(info, "romio_cb_read", choices[Random(0, 2)]);
  MPI_Info_set(info, "romio_ds_read", choices[Random(0, 2)]);
  MPI_Info_set(info, "romio_ds_write", choices[Random(0, 2)]);
  snprintf(number, sizeof number, "%d", Random(1, world_size));
  if (Random(0, 2) > 0) MPI_Info_set(info, "cb_nodes", number);
  MPI_Info_set(info, "cb_buffer_size", Random(0, 1) ? "4096" : "65536");
  MPI_Info_set(info, "ind_rd_buffer_size", "4096");
  MPI_Info_set(info, "ind_wr_buffer_size", "4096");
  return info;
}

/* Big-endian, where the file is external32. */
static void ToFile(int value, int swapped, unsigned char* to) {
  for (int i = 0; i < 4; i++) to[i] = (unsigned char)((unsigned)value >> (swapped ? 24 - 8 * i : 8 * i));
}

static int ValueOf(int call, int rank, int i) { return call * 100000 + rank * 10000 + i + 7; }

enum { kSpread = 3, kCollectiveKinds = 4 /* of seven */ };
static int memory[kMostInts * kSpread];

/* Puts what all ranks write in the call at `offsets` into the model. */
static void WriteModel(int call, const int* offsets, const int* counts, int swapped) {
  for (int r = 0; r < world_size; r++) {
    for (int i = 0; i < counts[r]; i++) {
      const long at = Place(r, offsets[r] + i);
      if (at + 4 > kFile) MPI_Abort(MPI_COMM_WORLD, 3);
      ToFile(ValueOf(call, r, i), swapped, model + at);
      if (at + 4 > model_size) model_size = at + 4;
    }
  }
}

/* A call that found no room wrote some of it, and nothing else. The model is what the file has then. */
static void CheckHalfWritten(int call, const int* offsets, const int* counts, int swapped) {
  static unsigned char before[kFile];
  const long size_before = model_size;
  memcpy(before, model, sizeof model);
  WriteModel(call, offsets, counts, swapped);
  memset(whole, 0, sizeof whole);
  const long size = ReadPlain(whole, sizeof whole);
  if (size < size_before || size > model_size || (size > size_before && size > disk.room)) {
    REPORT("call %d: %ld bytes are in a file of %ld before, %ld after, and room for %ld", call, size, size_before, model_size, (long)disk.room);
  }
  for (long i = 0; i < model_size; i++) {
    if (whole[i] == before[i] || (whole[i] == model[i] && i < disk.room)) continue;
    REPORT("call %d: byte %ld of the file is %d, which was %d and may be %d", call, i, whole[i], before[i], model[i]);
    break;
  }
  memcpy(model, whole, sizeof model);
  model_size = size;
}

/* Whether what a rank writes goes beyond the room that there is. */
static int FindsNoRoom(int rank, int offset, int count) { return disk.room != 0 && count > 0 && Place(rank, offset + count - 1) + 4 > disk.room; }

static void DrawRoom(void) {
  disk.room = Random(0, 3) == 0 ? Random(1, 12000) : 0;
  disk.full_errno = Random(0, 1) ? ENOSPC : EDQUOT;
}

static void OneCall(MPI_File file, int call, int swapped, int faulty) {
  const int kind = Random(0, 6), writes = Random(0, 1), scattered = Random(0, 1);
  int offsets[kMostRanks] = {0}, counts[kMostRanks] = {0}, spread = scattered ? kSpread : 1;
  MPI_Datatype type = MPI_INT;
  MPI_Status status;
  MPI_Request request;
  for (int r = 0; r < world_size; r++) {
    offsets[r] = Random(0, 900);
    counts[r] = Random(0, 5) == 0 ? 0 : Random(1, kMostInts);
  }
  const int offset = offsets[world_rank], count = counts[world_rank];
  int full = 0, full_here = 0;
  if (faulty) DrawRoom();
  for (int r = 0; r < world_size; r++) {
    const int finds_none = writes && FindsNoRoom(r, offsets[r], counts[r]);
    full |= finds_none;
    if (r == world_rank || kind < kCollectiveKinds) full_here |= finds_none;
  }
  if (scattered) {
    MPI_Type_create_resized(MPI_INT, 0, 4 * kSpread, &type);
    MPI_Type_commit(&type);
  }
  for (int i = 0; i < kMostInts * kSpread; i++) memory[i] = -5;
  if (writes) {
    for (int i = 0; i < count; i++) memory[i * spread] = ValueOf(call, world_rank, i);
  }
  if (kind == 1 || kind == 4) CHECK_OK(MPI_File_seek(file, offset, MPI_SEEK_SET));
  int code = 0;
  request = MPI_REQUEST_NULL;
  memset(&status, 0, sizeof status);
  switch (kind * 2 + writes) {
    case 0: code = MPI_File_read_at_all(file, offset, memory, count, type, &status); break;
    case 1: code = MPI_File_write_at_all(file, offset, memory, count, type, &status); break;
    case 2: code = MPI_File_read_all(file, memory, count, type, &status); break;
    case 3: code = MPI_File_write_all(file, memory, count, type, &status); break;
    case 4: code = MPI_File_iread_at_all(file, offset, memory, count, type, &request); break;
    case 5: code = MPI_File_iwrite_at_all(file, offset, memory, count, type, &request); break;
    case 6: code = MPI_File_read_at_all_begin(file, offset, memory, count, type);
            if (code == 0) code = MPI_File_read_at_all_end(file, memory, &status);
            break;
    case 7: code = MPI_File_write_at_all_begin(file, offset, memory, count, type);
            if (code == 0) code = MPI_File_write_at_all_end(file, memory, &status);
            break;
    case 8: code = MPI_File_read(file, memory, count, type, &status); break;
    case 9: code = MPI_File_write(file, memory, count, type, &status); break;
    case 10: code = MPI_File_read_at(file, offset, memory, count, type, &status); break;
    case 11: code = MPI_File_write_at(file, offset, memory, count, type, &status); break;
    case 12: code = MPI_File_iread_at(file, offset, memory, count, type, &request); break;
    case 13: code = MPI_File_iwrite_at(file, offset, memory, count, type, &request); break;
  }
  if (code == 0 && request != MPI_REQUEST_NULL) code = MPI_Wait(&request, &status);
  CHECK_CLASS(code, !full_here ? MPI_SUCCESS : disk.full_errno == EDQUOT ? MPI_ERR_QUOTA : MPI_ERR_NO_SPACE);
  if (scattered) MPI_Type_free(&type);
  if (full) {
    MPI_Barrier(MPI_COMM_WORLD);
    CheckHalfWritten(call, offsets, counts, swapped);
  } else if (writes) {
    if (BytesOf(&status) != 4 * count) CHECK_EQ(BytesOf(&status), 4 * count);
    WriteModel(call, offsets, counts, swapped);
  } else {
    int there = 0;
    while (there < count && Place(world_rank, offset + there) + 4 <= model_size) there++;
    CHECK_EQ(BytesOf(&status) / 4, there);
    int wrong = 0;
    for (int i = 0; i < there && wrong == 0; i++) {
      unsigned char bytes[4];
      ToFile(memory[i * spread], swapped, bytes);
      if (memcmp(bytes, model + Place(world_rank, offset + i), 4) != 0) wrong = i + 1;
    }
    if (wrong != 0) REPORT("call %d (kind %d): int %d of %d at offset %d is %d", call, kind, wrong - 1, count, offset, memory[(wrong - 1) * spread]);
    if (scattered) {
      for (int i = 0; i < count; i++) {
        if (memory[i * spread + 1] != -5) REPORT("call %d: memory between elements was written", call);
      }
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void OneRun(int seed) {
  const int before = failures;
  MPI_File file;
  state = (unsigned long long)seed * 2654435761u + 12345;
  for (int i = 0; i < 10; i++) Random(0, 1);
  const int faulty = Random(0, 1);
  memset(&disk, 0, sizeof disk);
  if (faulty) {
    disk.seed = (unsigned)(seed * kMostRanks + world_rank);
    disk.interrupted = Random(0, 200);
    disk.shortened = Random(0, 300);
    disk.slow = Random(0, 20);
    disk.slow_microseconds = 2000;
  }
  memset(model, 0, (size_t)model_size);
  model_size = 0;
  NameFile("random");
  MPI_Info info = RandomHints();
  const int swapped = Random(0, 3) == 0;
  CHECK_OK(MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &file));
  for (int view = 0; view < 2; view++) {
    MakeTile();
    MPI_Datatype type = FileType();
    CHECK_OK(MPI_File_set_view(file, tile.displacement, MPI_INT, type, swapped ? "external32" : "native", info));
    MPI_Type_free(&type);
    if (Random(0, 5) == 0) CHECK_OK(MPI_File_set_atomicity(file, 1));
    for (int call = 0; call < kCalls; call++) OneCall(file, view * kCalls + call, swapped, faulty);
  }
  MPI_Info_free(&info);
  CHECK_OK(MPI_File_close(&file));
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) {
    CHECK_EQ(ReadPlain(whole, sizeof whole), model_size);
    for (long i = 0; i < model_size; i++) {
      if (whole[i] == model[i]) continue;
      REPORT("byte %ld of the file is %d, not %d", i, whole[i], model[i]);
      break;
    }
    unlink(file_name);
  }
  if (failures != before) REPORT("this was seed %d", seed);
}

/* A file system over a network may say only then that it had no room. All ranks hear of it, and the file is closed. */
static void CloseTellsWhatWasLost(int failing_rank) {
  MPI_File file = OpenNew("lost", MPI_MODE_RDWR | MPI_MODE_CREATE);
  CHECK_OK(MPI_File_write_at(file, world_rank, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE));
  memset(&disk, 0, sizeof disk);
  if (world_rank == failing_rank) disk.close_errno = EDQUOT;
  CHECK_CLASS(MPI_File_close(&file), MPI_ERR_QUOTA);
  disk.close_errno = 0;
  CHECK(file == MPI_FILE_NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) unlink(file_name);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  /* With the default hints, too, and alone: other bytes than were written, those of gaps in memory among them. */
  if (MpichDeviates("fails with most seeds")) return End();
  const char* asked = getenv("RANDOM_FILE_RUNS");
  const int runs = argc > 1 ? atoi(argv[1]) : asked != NULL ? atoi(asked) : 8, first = argc > 2 ? atoi(argv[2]) : 1;
  CloseTellsWhatWasLost(0);
  CloseTellsWhatWasLost(world_size - 1);
  for (int seed = first; seed < first + runs; seed++) OneRun(seed);
  long faults = disk_faults, all_faults = 0;
  MPI_Reduce(&faults, &all_faults, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (world_rank == 0 && runs >= kEnoughRuns) CHECK(all_faults > 0);
  return End();
}
