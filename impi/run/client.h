#ifndef IMPI_RUN_CLIENT_H_
#define IMPI_RUN_CLIENT_H_

#include "impi/run/client_options.h"

namespace weft::impi {

// `impirun -client`: joins the job, connects this host with those of the other clients, starts the ranks, and is their agent until all have ended. Says on
// standard error why the job failed. Returns the exit status: mpiexec's; 1 if the job failed elsewhere; 2 for a wrong command line of mpiexec.
//
// The parts of it, in this order: a process for mpiexec (ranks_process), the server (join), the other hosts (connect), packets (carry), and the end: when mpiexec
// has ended, FINI goes to the server.
int RunClient(const ClientOptions& options);

}  // namespace weft::impi

#endif  // IMPI_RUN_CLIENT_H_
