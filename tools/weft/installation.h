#ifndef TOOLS_WEFT_INSTALLATION_H_
#define TOOLS_WEFT_INSTALLATION_H_

#include <string>

#include "tools/weft/report.h"

// The checks of `weft doctor` that look at files and load nothing: what is installed, in which versions, and what else is on the machine.
// `folder` holds Weft's libraries (LibraryFolder()).
namespace weft::tool {

// How to mend an installation: by the package, or by ./install or the archive.
std::string Reinstall(const std::string& folder);

// What to do about a library that does not load for the loader's reason `error`.
std::string LoadRemedy(const std::string& folder, const std::string& error);

// Packages that dpkg has begun to install or to remove, and files that are missing or cut short. False: a library is cut short; loading it
// would end the process (SIGBUS).
bool CheckFiles(Report& report, const std::string& folder);

// Whether the files in `folder` are of this version, and whether PATH leads to a Weft of another version.
void CheckVersions(Report& report, const std::string& folder);

// Whether LD_LIBRARY_PATH leads to other libraries of the same names.
void CheckLibraryPath(Report& report, const std::string& folder);

// The folders that Weft writes to, and the home folder, which it does not need.
void CheckWritable(Report& report);

}  // namespace weft::tool

#endif  // TOOLS_WEFT_INSTALLATION_H_
