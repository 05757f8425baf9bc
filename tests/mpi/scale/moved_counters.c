/* moved_counters HOW: another process of the user, here rank 0 by itself, adds one to words of the memory that the ranks of the host share: to those that each
 * fence adds one to (`fence`), to those that each rank in a fence adds one to (`arrived`), or to those that name the rank which has a lock (`lock`).
 * Nobody waits for ever for such a word, but ranks would pass where they must not. Some rank gets an error within a few calls. */
#define _DEFAULT_SOURCE
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/mpi/check.h"

enum { kFences = 1000, kPage = 4096, kMostPages = 1 << 14 };

static struct {
  uint32_t *page, before[kPage / sizeof(uint32_t)];
} *pages;
static int page_count;

/* All pages of memory in common that have something in them, and what it is. */
static void Look(void) {
  char line[512], name[256];
  FILE* maps = fopen("/proc/self/maps", "r");
  pages = calloc(kMostPages, sizeof *pages);
  while (fgets(line, sizeof line, maps) != NULL) {
    unsigned long first, end;
    name[0] = 0;
    if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %255s", &first, &end, name) < 3 || strstr(name, "memfd:weft") == NULL) continue;
    for (unsigned long at = first; at < end && page_count < kMostPages; at += kPage) {
      unsigned char resident;
      if (mincore((void*)at, kPage, &resident) != 0 || !(resident & 1)) continue;
      memcpy(pages[page_count].before, (void*)at, kPage);
      pages[page_count++].page = (uint32_t*)at;
    }
  }
  fclose(maps);
}

/* Adds one to each word that has grown by `least` to `most` since. How many. */
static int Move(uint32_t least, uint32_t most) {
  int moved = 0;
  for (int page = 0; page < page_count; page++) {
    for (size_t i = 0; i < kPage / sizeof(uint32_t); i++) {
      const uint32_t growth = pages[page].page[i] - pages[page].before[i];
      if (growth < least || growth > most) continue;
      pages[page].page[i]++;
      moved++;
    }
  }
  return moved;
}

/* Ends the job, if that is an error. */
static void Need(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length;
  if (code == MPI_SUCCESS) return;
  MPI_Error_string(code, text, &length);
  printf("rank %d: %s\n", world_rank, text);
  fflush(NULL);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  Begin(&argc, &argv);
  const char* how = argc > 1 ? argv[1] : "fence";
  const uint32_t ranks = (uint32_t)world_size;
  char* memory;
  MPI_Win win;
  MPI_Win_allocate(kPage, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(how, "lock") == 0) {
    while (world_rank != 0) pause();
    Look();
    Need(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
    CHECK(Move(1, 1) > 0); /* rank 0 is written as 1 */
    Need(MPI_Win_unlock(1, win));
  } else {
    for (int i = 0; i < 2; i++) MPI_Win_fence(0, win);
    if (world_rank == 0) Look();
    for (int i = 0; i < kFences; i++) MPI_Win_fence(0, win);
    /* The others come to the next fence meanwhile, as they did when rank 0 looked. */
    if (world_rank == 0 && strcmp(how, "fence") == 0) CHECK(Move(kFences, kFences) > 0);
    if (world_rank == 0 && strcmp(how, "arrived") == 0) CHECK(Move(kFences * ranks - (ranks - 1), kFences * ranks + ranks - 1) > 0);
    for (int i = 0; i < 3; i++) Need(MPI_Win_fence(0, win));
  }
  puts("no error");
  fflush(NULL);
  MPI_Abort(MPI_COMM_WORLD, 1);
}
