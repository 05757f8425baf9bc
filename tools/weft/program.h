#ifndef TOOLS_WEFT_PROGRAM_H_
#define TOOLS_WEFT_PROGRAM_H_

#include <string>

namespace weft::tool {

// The file that execvp(3) would run as `program`: `program` itself if it has a slash, otherwise the first executable of
// that name in PATH. Empty: there is none.
std::string FindProgram(const std::string& program);

// Why the program in `file` will not load Weft's libraries under `weft run`: it is statically linked, is for an
// architecture with another word size, or has the set-user-ID or set-group-ID bit, with which the loader ignores
// LD_LIBRARY_PATH. The text is the end of a sentence. Empty: it will load them, or is a script.
std::string WhyLibrariesAreIgnored(const std::string& file);

}  // namespace weft::tool

#endif  // TOOLS_WEFT_PROGRAM_H_
