#ifndef PMI_LAUNCH_RELAY_H_
#define PMI_LAUNCH_RELAY_H_

#include <string>
#include <vector>

namespace weft::pmi {

// mpiexec for a process that was not started by a launcher and needs one (pmi/client/own_launcher.h):
//
//   mpiexec --singleton NAME     detaches from its parent; job 0 is one rank on this host: mpiexec --relay NAME
//   mpiexec --relay NAME         connects to the process, which listens at NAME of the abstract namespace, and forwards
//                                data between the process and the launcher. It ends when one of them ends.
//
// Returns the command line that the first form stands for, in a new process.
std::vector<std::string> BecomeLauncherOf(const std::string& name);

// main() of the second form. Returns the exit status.
int RelayMain(const std::string& name);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_RELAY_H_
