#ifndef PMI_LAUNCH_NAME_SERVER_H_
#define PMI_LAUNCH_NAME_SERVER_H_

#include <string>

namespace weft::pmi {

// `mpiexec -nameserver-run FILE`: keeps the names of all jobs whose mpiexec was given the same file, until a signal ends it. Names go with
// the connection of the mpiexec that brought them. Writes the file once it listens, and removes it at its end. The exit status.
int NameServerMain(const std::string& file);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_NAME_SERVER_H_
