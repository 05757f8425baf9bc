#include "base/interface_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace weft {
namespace {

using Addresses = std::vector<std::string>;

constexpr char kFile[] =
    "# two switches\n"
    "node1  10.1.0.1\t10.2.0.1   # the first is the primary path's\r\n"
    "\n"
    "  node2.example  10.1.0.2 fd00::2\n"
    "node3 10.1.0.3";

TEST(InterfaceFileTest, EachHostFindsItsLine) {
  EXPECT_EQ(AddressesInInterfaceFile(kFile, "f", "node1").value(), (Addresses{"10.1.0.1", "10.2.0.1"}));
  EXPECT_EQ(AddressesInInterfaceFile(kFile, "f", "node1.example").value(), (Addresses{"10.1.0.1", "10.2.0.1"}));
  EXPECT_EQ(AddressesInInterfaceFile(kFile, "f", "node2.example").value(), (Addresses{"10.1.0.2", "fd00::2"}));
  EXPECT_EQ(AddressesInInterfaceFile(kFile, "f", "node3").value(), (Addresses{"10.1.0.3"}));
}

TEST(InterfaceFileTest, ErrorsNameFileLineAndValue) {
  for (const auto& [text, error] : std::vector<std::pair<std::string, std::string>>{
           {"node1 10.1.0.1\nnode2 10.1.0.256\n", "f:2: '10.1.0.256' is not a numeric address"},
           {"node1 10.1.0.1\n\nnode2 eth0\n", "f:3: 'eth0' is not a numeric address"},
           {"node1 10.1.0.1 10.1.0.1\n", "f:1: '10.1.0.1' appears twice"},
           {"node1 fd00::1 fd00:0::1\n", "f:1: 'fd00:0::1' appears twice"},
           {"node1 # 10.1.0.1\n", "f:1: 'node1' has no address"},
           {"node1 10.1.0.1\nnode1 10.1.0.2\n", "f:2: 'node1' already has a line"},
           {"node/1 10.1.0.1\n", "f:1: 'node/1' is not a host name"},
           {"node2 10.1.0.1\n", "f: it has no line for this host, 'node1'"},
           {"", "f: it has no line for this host, 'node1'"}}) {
    const auto read = AddressesInInterfaceFile(text, "f", "node1");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error(), error);
  }
}

TEST(InterfaceFileTest, AFileIsReadForThisHost) {
  const std::string name = ::testing::TempDir() + "/interfaces";
  char host[300] = "";
  gethostname(host, sizeof host - 1);
  std::ofstream(name) << "another 10.0.0.1\n" << host << " 127.0.0.1 ::1\n";
  EXPECT_EQ(ReadInterfaceFile(name).value(), (Addresses{"127.0.0.1", "::1"}));
  EXPECT_EQ(ReadInterfaceFile("/no/such/file").error(), "/no/such/file: No such file or directory");
  EXPECT_EQ(ReadInterfaceFile("/").error(), "/: Is a directory");
}

}  // namespace
}  // namespace weft
