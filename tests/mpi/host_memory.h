/* Needs _GNU_SOURCE. */
#ifndef TESTS_MPI_HOST_MEMORY_H_
#define TESTS_MPI_HOST_MEMORY_H_

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Pages of the memory file of that name; 0: there is none. */
static inline long PagesOfMemoryFile(const char* file_name) {
  char path[300], name[256];
  long pages = 0;
  DIR* files = opendir("/proc/self/fd");
  for (struct dirent* file; (file = readdir(files)) != NULL;) {
    snprintf(path, sizeof path, "/proc/self/fd/%s", file->d_name);
    const ssize_t length = readlink(path, name, sizeof name - 1);
    if (length < 0) continue;
    name[length] = 0;
    struct stat state;
    if (strstr(name, file_name) != NULL && stat(path, &state) == 0) pages += state.st_blocks / 8;
  }
  closedir(files);
  return pages;
}

/* Of the memory that the ranks of the host have in common. */
static inline long HostPages(void) { return PagesOfMemoryFile("memfd:weft-mpi "); }
/* Of this rank's memory that MPI_Alloc_mem returned. */
static inline long AllocMemPages(void) { return PagesOfMemoryFile("memfd:weft-mpi-memory "); }

#endif /* TESTS_MPI_HOST_MEMORY_H_ */
