#ifndef BASE_VERSION_H_
#define BASE_VERSION_H_

#include <optional>
#include <string>
#include <string_view>

namespace weft {

// The version of this Weft. The file VERSION names the latest release ("0.1.0"). tools/install-files and tools/package
// write the output of tools/version into the copies that they install: "0.1.0+12.g1a2b3c4" for the twelfth commit after
// that release. A copy that was built but not installed says "0.1.0+dev". The build does not depend on the commit, so a
// new commit rebuilds nothing.
std::string_view Version();

// The version written in a program or library of Weft, installed or not. nullopt if the file cannot be read or is not
// from Weft.
std::optional<std::string> VersionOf(const std::string& file);

}  // namespace weft

#endif  // BASE_VERSION_H_
