#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

// Of LeakSanitizer, which itself dies when it looks for what is only known to a thread of a library that was loaded with dlopen().
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off();
int __lsan_is_turned_off() { return 1; }

namespace {

TEST(SharedLibrary, SctpWorksInALibraryThatIsLoadedLater) {
  const char* const runfiles = getenv("TEST_SRCDIR");
  ASSERT_NE(runfiles, nullptr);
  const std::string path = std::string(runfiles) + "/weft/transport/sctp/testing/libin_shared_library.so";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  auto* const talk = reinterpret_cast<int (*)()>(dlsym(library, "weft_sctp_talks_to_itself"));
  ASSERT_NE(talk, nullptr);
  EXPECT_EQ(talk(), 0);
  EXPECT_EQ(dlsym(library, "usrsctp_init"), nullptr) << "a program may have a usrsctp of its own";
}

}  // namespace
