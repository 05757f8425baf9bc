#include "base/address_space_mark.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace weft {
namespace {

// Whether 8 bytes were written at `address` of that process behind its `mark`.
bool WriteBehind(pid_t pid, uint64_t mark, uint64_t* address) {
  uint64_t value = 77;
  const iovec here{&value, sizeof value}, there{address, sizeof value};
  return MarkedProcess(pid, mark).Write({&here, 1}, {&there, 1}) == sizeof value;
}

// A child that shows its own mark, and then waits to be killed.
class Child {
 public:
  Child() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
      const uint64_t its = AddressSpaceMark();
      (void)!write(ends[1], &its, sizeof its);
      pause();
      _exit(0);
    }
    close(ends[1]);
    EXPECT_EQ(read(ends[0], &mark, sizeof mark), static_cast<ssize_t>(sizeof mark));
    close(ends[0]);
  }
  ~Child() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  uint64_t At(uint64_t* address) const {
    uint64_t value = 0;
    const iovec here{&value, sizeof value}, there{address, sizeof value};
    EXPECT_EQ(process_vm_readv(pid, &here, 1, &there, 1, 0), static_cast<ssize_t>(sizeof value));
    return value;
  }

  pid_t pid = -1;
  uint64_t mark = 0;
};

TEST(AddressSpaceMarkTest, IsTheSameAllTheTimeAndWritable) {
  const uint64_t mark = AddressSpaceMark();
  ASSERT_NE(mark, 0u);
  EXPECT_EQ(AddressSpaceMark(), mark);
  *reinterpret_cast<volatile uint64_t*>(mark) = 5;
}

TEST(AddressSpaceMarkTest, ACopyBehindTheMarkReachesTheProcessThatHasIt) {
  static uint64_t word = 1;
  const Child child;
  ASSERT_NE(child.mark, 0u);
  EXPECT_TRUE(WriteBehind(child.pid, child.mark, &word));
  EXPECT_EQ(child.At(&word), 77u);
}

TEST(AddressSpaceMarkTest, ACopyEndsWhereMemoryDoes) {
  static uint64_t word = 5;
  const Child child;
  uint64_t got[2] = {};
  const iovec here{got, sizeof got}, there[] = {{&word, sizeof word}, {nullptr, sizeof word}};
  const MarkedProcess process(child.pid, child.mark);
  EXPECT_EQ(process.Read({&here, 1}, there), static_cast<ssize_t>(sizeof word));
  EXPECT_EQ(got[0], 5u);
  const iovec nowhere{nullptr, sizeof word};
  EXPECT_EQ(process.Read({&here, 1}, {&nowhere, 1}), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(process.Read({&nowhere, 1}, {there, 1}), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(MarkedProcess(child.pid, 0).Read({&here, 1}, {there, 1}), -1);
  EXPECT_EQ(errno, ESRCH);
}

// As when the number is another process's by now: even a child of the process that is meant, with the same memory at the same addresses.
TEST(AddressSpaceMarkTest, ACopyBehindTheMarkOfAnotherProcessChangesNothing) {
  static uint64_t word = 1;
  const uint64_t ours = AddressSpaceMark();
  const Child child, other;
  EXPECT_NE(child.mark, ours);
  for (const uint64_t mark : {ours, other.mark}) {
    errno = 0;
    EXPECT_FALSE(WriteBehind(child.pid, mark, &word));
    EXPECT_EQ(errno, ESRCH);
  }
  EXPECT_EQ(child.At(&word), 1u);
}

}  // namespace
}  // namespace weft
