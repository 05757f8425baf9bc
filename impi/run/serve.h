#ifndef IMPI_RUN_SERVE_H_
#define IMPI_RUN_SERVE_H_

#include "impi/run/options.h"

namespace weft::impi {

// `impirun -server`: prints "HOST:PORT" as the only line of its standard output, and serves one job. All else that it says
// goes to standard error. Returns the exit status: 0 if all clients ended in order, 1 if the job failed or a signal ended
// the server.
int ServeJob(const ServerOptions& options);

}  // namespace weft::impi

#endif  // IMPI_RUN_SERVE_H_
