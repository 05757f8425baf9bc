#include "pmi/named_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

namespace weft::pmi {
namespace {

using ::testing::HasSubstr;

constexpr size_t kLongest = 200'000;

std::string Path(const std::string& name) { return ::testing::TempDir() + "named_file_" + name; }

std::string MadeFifo(const std::string& name) {
  std::string path = Path(name);
  unlink(path.c_str());
  EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
  return path;
}

std::string ErrorOf(const std::string& path, Accepts accepts = Accepts::kFiles) {
  const auto file = ReadNamedFile(path, "the list " + path, kLongest, accepts);
  return file ? "" : file.error().message;
}

TEST(NamedFile, IsReadWithWhatItIs) {
  const std::string path = Path("plain");
  for (const size_t size : {size_t{0}, size_t{1}, size_t{64} << 10, (size_t{64} << 10) + 1, kLongest}) {
    std::ofstream(path) << std::string(size, 'x');
    const auto file = ReadNamedFile(path, "the list", kLongest);
    ASSERT_TRUE(file) << size;
    EXPECT_EQ(file->text, std::string(size, 'x'));
    EXPECT_EQ(file->status.st_uid, geteuid());
  }
}

TEST(NamedFile, SaysWhichFileAndWhy) {
  EXPECT_EQ(ErrorOf("/nonexistent"), "cannot read the list /nonexistent: No such file or directory");
  const std::string path = Path("long");
  std::ofstream(path) << std::string(kLongest + 1, 'x');
  EXPECT_THAT(ErrorOf(path), HasSubstr(": it is larger than 200000 bytes"));
}

TEST(NamedFile, IsRefusedByItsTypeWithoutAWait) {
  const std::string fifo = MadeFifo("fifo");  // which nobody writes into
  EXPECT_EQ(ErrorOf(fifo), "cannot read the list " + fifo + ": it is a pipe, not a file");
  for (const Accepts accepts : {Accepts::kFiles, Accepts::kFilesOrPipes}) {
    EXPECT_THAT(ErrorOf(::testing::TempDir(), accepts), HasSubstr("it is a directory, not a file"));
    EXPECT_THAT(ErrorOf("/dev/zero", accepts), HasSubstr("it is a device, not a file"));
    EXPECT_THAT(ErrorOf("/dev/null", accepts), HasSubstr("it is a device, not a file"));
  }
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // By a relative name: one of a socket is 107 bytes long at most.
  ASSERT_EQ(chdir(::testing::TempDir().c_str()), 0);
  const std::string path = "named_file_socket";
  path.copy(address.sun_path, path.size());
  unlink(path.c_str());
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_THAT(ErrorOf(path), HasSubstr("it is a socket"));
  close(fd);
}

TEST(NamedFile, APipeThatMayBeOneIsReadToItsEnd) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const std::string sent(150'000, 'y');  // more than a pipe holds
  std::thread writer([&] {
    for (size_t at = 0; at < sent.size();) {
      const ssize_t count = write(ends[1], sent.data() + at, sent.size() - at);
      if (count <= 0) break;
      at += static_cast<size_t>(count);
    }
    close(ends[1]);
  });
  // As a shell names the pipe of <(...).
  const auto file = ReadNamedFile("/dev/fd/" + std::to_string(ends[0]), "the list", kLongest, Accepts::kFilesOrPipes);
  writer.join();
  close(ends[0]);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->text, sent);
  EXPECT_EQ(ErrorOf(MadeFifo("empty"), Accepts::kFilesOrPipes), "");  // nobody has it open for writing: its end
}

TEST(NamedFile, OnlyAFileIsReplaced) {
  const std::string path = Path("replaced");
  unlink(path.c_str());
  EXPECT_EQ(ProblemOfReplacing(path), "");
  std::ofstream(path) << "x";
  EXPECT_EQ(ProblemOfReplacing(path), "");
  EXPECT_EQ(ProblemOfReplacing("/dev/null"), "it is a device, not a file");
  EXPECT_EQ(ProblemOfReplacing(MadeFifo("not_replaced")), "it is a pipe, not a file");
}

}  // namespace
}  // namespace weft::pmi
