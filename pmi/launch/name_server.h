#ifndef PMI_LAUNCH_NAME_SERVER_H_
#define PMI_LAUNCH_NAME_SERVER_H_

#include <string>

namespace weft::pmi {

// `mpiexec -nameserver-run FILE`: keeps the names of all jobs whose mpiexec was given the same file, until a signal
// ends it. A name is removed when the connection of the mpiexec that published it ends. The file is written when the
// server listens, and removed when it ends. Returns the exit status.
int NameServerMain(const std::string& file);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_NAME_SERVER_H_
