#include "mpi_hybrid/io/posix_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weft::mpi::io {
namespace {

void ReadToEveryPlaceInAPage() {
  constexpr size_t kPage = 4096, kBytes = 300'001;
  std::vector<uint8_t> content(kBytes);
  for (size_t i = 0; i < kBytes; ++i) content[i] = static_cast<uint8_t>(i * 7 % 251);
  std::string path = ::testing::TempDir() + "/posix_file_XXXXXX";
  const int fd = mkstemp(path.data());
  ASSERT_GE(fd, 0);
  ASSERT_EQ(write(fd, content.data(), kBytes), static_cast<ssize_t>(kBytes));
  close(fd);
  std::unique_ptr<RawFile> file;
  ASSERT_EQ(PosixFile::Open(path, O_RDONLY, 0, &file), 0);
  unlink(path.c_str());
  std::vector<uint8_t> memory(kBytes + 4 * kPage);
  uint8_t* const page = memory.data() + kPage - reinterpret_cast<uintptr_t>(memory.data()) % kPage;
  for (const size_t place : {0, 1, 16, 31, 32, 64, 4095}) {
    for (const size_t offset : {size_t{0}, size_t{1}, kPage - 1, size_t{5000}, kBytes - 10'000}) {
      for (const size_t length : {size_t{1}, size_t{8191}, size_t{8192}, size_t{131'073}, kBytes}) {
        std::fill(memory.begin(), memory.end(), 0xee);
        size_t done = 0;
        for (ssize_t moved = 1; moved > 0 && done < length; done += static_cast<size_t>(moved)) {
          const iovec pieces[] = {{page + place + done, length - done}};
          moved = file->ReadAt(pieces, static_cast<int64_t>(offset + done));
          ASSERT_GE(moved, 0);
        }
        ASSERT_EQ(done, std::min(length, kBytes - offset));
        ASSERT_TRUE(std::equal(page + place, page + place + done, content.begin() + static_cast<long>(offset)));
        ASSERT_EQ(page[place + done], 0xee);
        if (place > 0) {
          ASSERT_EQ(page[place - 1], 0xee);
        }
      }
    }
  }
}

TEST(PosixFile, ReadsToEveryPlaceInAPage) {
  const bool needed = std::exchange(PosixFile::reads_aside, false);
  ReadToEveryPlaceInAPage();
  PosixFile::reads_aside = true;
  ReadToEveryPlaceInAPage();
  PosixFile::reads_aside = needed;
}

}  // namespace
}  // namespace weft::mpi::io
