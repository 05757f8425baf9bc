/* start PROGRAM NAME ARGUMENTS...: what the kernel calls in place of a PROGRAM for arm64 (tools/arm64/run). Starts qemu-user with ROOT's libraries and
 * argv[0] NAME.
 *
 * LD_PRELOAD and its like name libraries for arm64. They go to the program, and not to qemu itself, which is a program of this machine. This one is
 * linked statically for the same reason: the loader of this machine would complain about each of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char** environ;

int main(int argc, char** argv) {
  if (argc < 3) return 127;
  size_t variables = 0;
  while (environ[variables] != NULL) variables++;
  char** words = calloc(2 * variables + argc + 8, sizeof *words);
  char** kept = calloc(variables + 1, sizeof *kept);
  if (words == NULL || kept == NULL) return 127;
  size_t word = 0, keep = 0;
  words[word++] = "qemu-aarch64";
  words[word++] = "-L";
  words[word++] = ROOT;
  words[word++] = "-0";
  words[word++] = argv[2];
  for (size_t i = 0; i < variables; i++) {
    if (strncmp(environ[i], "LD_", 3) == 0) {
      words[word++] = "-E";
      words[word++] = environ[i];
    } else {
      kept[keep++] = environ[i];
    }
  }
  words[word++] = argv[1];
  for (int i = 3; i < argc; i++) words[word++] = argv[i];
  execve("/usr/bin/qemu-aarch64", words, kept);
  perror("/usr/bin/qemu-aarch64");
  return 127;
}
