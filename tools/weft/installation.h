#ifndef TOOLS_WEFT_INSTALLATION_H_
#define TOOLS_WEFT_INSTALLATION_H_

#include <string>

#include "tools/weft/report.h"

// The checks of `weft doctor` that only look at files and load nothing: what is installed, in which versions, and what
// else is on the machine. `folder` has Weft's libraries (LibraryFolder()).
namespace weft::tool {

// How to repair an installation: by the package, or by ./install or the archive.
std::string Reinstall(const std::string& folder);

// What to do about a library that does not load, for the loader's reason `error`.
std::string LoadRemedy(const std::string& folder, const std::string& error);

// Finds packages that dpkg has only partly installed or removed, and files that are missing or truncated. Returns false
// if a library is truncated: loading it would end the process (SIGBUS).
bool CheckFiles(Report& report, const std::string& folder);

// Checks whether the files in `folder` have this version, and whether a Weft of another version is in PATH.
void CheckVersions(Report& report, const std::string& folder);

// Checks whether LD_LIBRARY_PATH leads to other libraries with the same names.
void CheckLibraryPath(Report& report, const std::string& folder);

// Checks the folders that Weft writes to, and the home folder, which it does not need.
void CheckWritable(Report& report);

}  // namespace weft::tool

#endif  // TOOLS_WEFT_INSTALLATION_H_
