#ifndef BASE_INTERFACE_FILE_H_
#define BASE_INTERFACE_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weft {

// A file that says which addresses each host has for several paths, the same for all hosts: one host a line, its name,
// then its numeric addresses, blanks between; the first is the primary path's. '#' begins a comment.
//
//   # two switches
//   node1  10.1.0.1  10.2.0.1
//   node2  10.1.0.2  10.2.0.2
//
// The addresses of `host`, whose line bears its name or the part before the first dot. The error names `file`, the line
// and the value: no name that a host may have, a host without or with the same name as another, what is no address, or
// one twice; and a host that is not there.
Result<std::vector<std::string>, std::string> AddressesInInterfaceFile(std::string_view text, std::string_view file,
                                                                       std::string_view host);

// The same of this host, from the file itself.
Result<std::vector<std::string>, std::string> ReadInterfaceFile(const std::string& file);

}  // namespace weft

#endif  // BASE_INTERFACE_FILE_H_
