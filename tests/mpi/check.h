/* Checks for conformance programs. A check that fails prints its place and the values and the program goes on; the exit status of
 * End() says whether all held at this rank. MPI errors end the program unless it sets another error handler. */
#ifndef TESTS_MPI_CHECK_H_
#define TESTS_MPI_CHECK_H_

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMostReports = 20 };

static int world_rank, world_size, failures;

#define REPORT(...)                                                              \
  do {                                                                           \
    if (++failures <= kMostReports) {                                            \
      fprintf(stderr, "%s:%d: rank %d: ", __FILE__, __LINE__, world_rank);       \
      fprintf(stderr, __VA_ARGS__);                                              \
      fputc('\n', stderr);                                                       \
    }                                                                            \
  } while (0)

#define CHECK(condition)                             \
  do {                                               \
    if (!(condition)) REPORT("not: %s", #condition); \
  } while (0)

#define CHECK_EQ(actual, expected)                                                                    \
  do {                                                                                                \
    long long actual_ = (long long)(actual), expected_ = (long long)(expected);                       \
    if (actual_ != expected_) REPORT("%s is %lld, not %lld", #actual, actual_, expected_);            \
  } while (0)

#define CHECK_NEAR(actual, expected, tolerance)                                                       \
  do {                                                                                                \
    double actual_ = (double)(actual), expected_ = (double)(expected), far_ = actual_ - expected_;    \
    if (!(far_ <= (tolerance) && far_ >= -(tolerance)))                                               \
      REPORT("%s is %.17g, not %.17g", #actual, actual_, expected_);                                  \
  } while (0)

#define CHECK_STR(actual, expected)                                                                   \
  do {                                                                                                \
    if (strcmp(actual, expected) != 0) REPORT("%s is \"%s\", not \"%s\"", #actual, actual, expected); \
  } while (0)

/* The call fails with an error of this class (MPI_SUCCESS: it does not fail). */
#define CHECK_CLASS(call, expected_class)                                                             \
  do {                                                                                                \
    int code_ = (call), class_;                                                                       \
    char text_[MPI_MAX_ERROR_STRING] = "";                                                            \
    int length_;                                                                                      \
    MPI_Error_class(code_, &class_);                                                                  \
    if (class_ != (expected_class)) {                                                                 \
      MPI_Error_string(code_, text_, &length_);                                                       \
      REPORT("%s: error class %d (%s), not %d (%s)", #call, class_, text_, expected_class, #expected_class); \
    }                                                                                                 \
  } while (0)

#define CHECK_OK(call) CHECK_CLASS(call, MPI_SUCCESS)

static inline void Begin(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
}

static inline int End(void) {
  MPI_Finalize();
  if (failures > kMostReports) fprintf(stderr, "rank %d: %d checks failed in all\n", world_rank, failures);
  return failures != 0;
}

/* The neighbours in the ring of all ranks. */
static inline int Right(void) { return (world_rank + 1) % world_size; }
static inline int Left(void) { return (world_rank + world_size - 1) % world_size; }

/* Bytes that tell sender, message and place apart. */
static inline unsigned char PatternByte(int sender, int message, size_t i) {
  return (unsigned char)((i * 31 + (i >> 8) * 7 + (size_t)sender * 101 + (size_t)message * 59 + 3) & 0xff);
}
static inline void FillPattern(void* buffer, size_t bytes, int sender, int message) {
  unsigned char* p = buffer;
  for (size_t i = 0; i < bytes; i++) p[i] = PatternByte(sender, message, i);
}
/* The index of the first byte that is different; `bytes` when none is. */
static inline size_t FirstDifference(const void* buffer, size_t bytes, int sender, int message) {
  const unsigned char* p = buffer;
  size_t i = 0;
  while (i < bytes && p[i] == PatternByte(sender, message, i)) i++;
  return i;
}
#define CHECK_PATTERN(buffer, bytes, sender, message) CHECK_EQ(FirstDifference(buffer, bytes, sender, message), bytes)

/* Source, tag and count of a status. */
#define CHECK_STATUS(status, source, tag, type, count)      \
  do {                                                      \
    int count_;                                             \
    MPI_Get_count(&(status), type, &count_);                \
    CHECK_EQ((status).MPI_SOURCE, source);                  \
    CHECK_EQ((status).MPI_TAG, tag);                        \
    CHECK_EQ(count_, count);                                \
  } while (0)

/* Whether this is MPICH, for the few checks that MPICH 4.0.2 fails: `how` says in what it deviates from the standard. */
static inline int MpichDeviates(const char* how) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(version, &length);
  return how != NULL && strncmp(version, "MPICH Version", 13) == 0;
}

#endif /* TESTS_MPI_CHECK_H_ */
