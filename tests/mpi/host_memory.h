/* Needs _GNU_SOURCE. */
#ifndef TESTS_MPI_HOST_MEMORY_H_
#define TESTS_MPI_HOST_MEMORY_H_

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Pages of the memory that the ranks of the host have in common; 0: there is none. */
static inline long HostPages(void) {
  char path[300], name[256];
  long pages = 0;
  DIR* files = opendir("/proc/self/fd");
  for (struct dirent* file; (file = readdir(files)) != NULL;) {
    snprintf(path, sizeof path, "/proc/self/fd/%s", file->d_name);
    const ssize_t length = readlink(path, name, sizeof name - 1);
    if (length < 0) continue;
    name[length] = 0;
    struct stat state;
    if (strstr(name, "memfd:weft-mpi ") != NULL && stat(path, &state) == 0) pages += state.st_blocks / 8;
  }
  closedir(files);
  return pages;
}

#endif /* TESTS_MPI_HOST_MEMORY_H_ */
