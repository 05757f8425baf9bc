#ifndef TOOLS_WEFT_PROGRAM_H_
#define TOOLS_WEFT_PROGRAM_H_

#include <string>

namespace weft::tool {

// The file that execvp(3) would run as `program`: itself where it has a slash, else the first executable one of that
// name in PATH. Empty: there is none.
std::string FindProgram(const std::string& program);

// Why the program in `file` will not load Weft's libraries although `weft run` starts it: it is linked statically, is
// of another architecture's size, or has the set-user-ID or set-group-ID bit, at which the loader ignores
// LD_LIBRARY_PATH. A sentence's end; empty: it will, or is a script.
std::string WhyLibrariesAreIgnored(const std::string& file);

}  // namespace weft::tool

#endif  // TOOLS_WEFT_PROGRAM_H_
