#ifndef BASE_INTERFACE_FILE_H_
#define BASE_INTERFACE_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weft {

// A file that lists the addresses of each host, for several paths. All hosts have the same file. Each line has the name
// of a host, then its numeric addresses, separated by blanks. The first address is that of the primary path. '#' begins
// a comment.
//
//   # two switches
//   node1  10.1.0.1  10.2.0.1
//   node2  10.1.0.2  10.2.0.2
//
// Returns the addresses of `host`. A line matches if its name is that of the host, or the part before the first dot.
// The error names `file`, the line and the value. Errors: a name that no host can have; a host without addresses; two
// lines with the same name; a value that is not an address; the same address twice; `host` is not in the file.
Result<std::vector<std::string>, std::string> AddressesInInterfaceFile(std::string_view text, std::string_view file,
                                                                       std::string_view host);

// The same for this host; reads the file.
Result<std::vector<std::string>, std::string> ReadInterfaceFile(const std::string& file);

}  // namespace weft

#endif  // BASE_INTERFACE_FILE_H_
