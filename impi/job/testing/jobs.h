#ifndef IMPI_JOB_TESTING_JOBS_H_
#define IMPI_JOB_TESTING_JOBS_H_

#include <map>
#include <vector>

#include "impi/job/announcement.h"
#include "impi/job/job.h"

namespace weft::impi::testing {

// A job of clients with hosts with so many processes. Host h has the address 192.0.2.(h+1) and the port 5000 + h; world rank r has its host's address and the
// number 100 + r. DATALEN is 100, ackmark 2, hiwater 4; a test changes what it likes.
std::vector<Announcement> Announcements(const std::vector<std::vector<int>>& clients);

// What the server tells all clients.
std::map<Label, Collected> Tell(const std::vector<Announcement>& clients);

// As client `self` has it. The announcements are in order.
Job JobOf(const std::vector<Announcement>& clients, int self);

}  // namespace weft::impi::testing

#endif  // IMPI_JOB_TESTING_JOBS_H_
