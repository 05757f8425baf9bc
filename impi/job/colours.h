#ifndef IMPI_JOB_COLOURS_H_
#define IMPI_JOB_COLOURS_H_

#include <span>

#include "impi/job/job.h"
#include "impi/job/ranks.h"

namespace weft::impi {

// The attributes of a communicator (IMPI 0.0, section 2.5), with which a program divides it by IMPI_CLIENT_COLOR or IMPI_HOST_COLOR.
struct Colours {
  int client_size = 0, client_color = 0;  // IMPI_CLIENT_SIZE, IMPI_CLIENT_COLOR
  int host_size = 0, host_color = 0;      // IMPI_HOST_SIZE, IMPI_HOST_COLOR
  bool operator==(const Colours&) const = default;
};

// Of `process` in a communicator with the processes `group`, which contains it. Of an intercommunicator, it is for the caller to say which group counts.
Colours ColoursOf(const Job& job, std::span<const WorldRank> group, WorldRank process);

}  // namespace weft::impi

#endif  // IMPI_JOB_COLOURS_H_
