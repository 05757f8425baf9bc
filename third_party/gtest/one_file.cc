// The main program of a test that is linked with other files' cases: runs those of one file. It is the one that --cases_of=PATH names, or that has the
// program's name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <set>
#include <string>

namespace {

std::string Stem(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.substr(0, name.rfind('.'));
}

// What --gtest_filter is given for the cases of `file` that `filter` selects.
std::string Among(const std::string& file, const std::string& filter) {
  std::string others;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    std::string names;
    bool mixed = false;
    for (int k = 0; k < suite.total_test_count(); ++k) {
      const testing::TestInfo& test = *suite.GetTestInfo(k);
      if (test.file() == file) {
        mixed = true;
      } else {
        names += ":" + std::string(suite.name()) + "." + test.name();
      }
    }
    others += mixed || names.empty() ? names : ":" + std::string(suite.name()) + ".*";
  }
  if (others.empty()) return filter;
  const size_t minus = filter.find('-');
  return minus == std::string::npos ? filter + "-" + others.substr(1) : filter + others;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  constexpr char kOption[] = "--cases_of=";
  std::string named;
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], kOption, sizeof kOption - 1) == 0) {
      named = argv[i] + sizeof kOption - 1;
    } else {
      argv[kept++] = argv[i];
    }
  }
  std::set<std::string> files;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    for (int k = 0; k < all.GetTestSuite(i)->total_test_count(); ++k) files.insert(all.GetTestSuite(i)->GetTestInfo(k)->file());
  }
  for (const std::string& file : files) {
    if (file.ends_with("_test.cc")) continue;
    std::fprintf(stderr, "%s: nothing says which test has the cases of %s, so they would not run: give the cc_test alone = True\n", argv[0], file.c_str());
    return 2;
  }
  if (named.empty()) {
    for (const std::string& file : files) {
      if (Stem(file) == Stem(argv[0])) named = file;
    }
  }
  if (files.count(named) == 0) {
    std::fprintf(stderr, "%s: no cases of the file '%s'; --cases_of is one of\n", argv[0], named.c_str());
    for (const std::string& file : files) std::fprintf(stderr, "  %s\n", file.c_str());
    return 2;
  }
  testing::GTEST_FLAG(filter) = Among(named, testing::GTEST_FLAG(filter));
  return RUN_ALL_TESTS();
}
