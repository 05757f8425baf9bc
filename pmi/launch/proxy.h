#ifndef PMI_LAUNCH_PROXY_H_
#define PMI_LAUNCH_PROXY_H_

#include <memory>
#include <string>

#include "base/job_secret.h"
#include "pmi/launch/connection.h"

namespace weft::pmi {

// Runs the ranks of one host: starts them, forwards their output, input and PMI data, passes signals on, and makes sure
// that no process of the job is left when it ends, even if mpiexec dies. Does the same for hosts below it
// (proxy_tree.h). `connection`: to mpiexec or to the proxy above. Returns when all is done. Single-threaded. Takes over
// the process's signals and children.
void RunProxy(std::unique_ptr<Connection> connection, const JobSecret& secret);

// `mpiexec --proxy`, started on another host by ssh: reads mpiexec's address from standard input (see remote_start.h),
// connects, and runs the proxy. Returns the exit status.
int RemoteProxyMain();

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_PROXY_H_
