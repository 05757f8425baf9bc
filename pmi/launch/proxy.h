#ifndef PMI_LAUNCH_PROXY_H_
#define PMI_LAUNCH_PROXY_H_

#include <memory>
#include <string>

#include "base/job_secret.h"
#include "pmi/launch/connection.h"

namespace weft::pmi {

// Runs the ranks of one host: starts them, carries their output, input and PMI bytes, passes signals on, and sees to it that no
// process of the job is left when it ends, mpiexec's own death included; and the same for hosts below it (proxy_tree.h). `connection`: with
// mpiexec, or the proxy above. Returns when all is done. Single-threaded; takes over the process's signals and children.
void RunProxy(std::unique_ptr<Connection> connection, const JobSecret& secret);

// `mpiexec --proxy`, started on another host by ssh: reads where mpiexec is from standard input (see remote_start.h), connects,
// and runs the proxy. The exit status.
int RemoteProxyMain();

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_PROXY_H_
