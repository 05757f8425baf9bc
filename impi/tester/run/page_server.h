#ifndef IMPI_TESTER_RUN_PAGE_SERVER_H_
#define IMPI_TESTER_RUN_PAGE_SERVER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "impi/tester/run/verdict.h"
#include "impi/tester/script.h"

namespace weft::impi::tester {

// Shows the scripts as a page at http://127.0.0.1:PORT/SECRET/ until `stopped` says so; `port` 0: any that is free.
// `say` gets the address. A thread of its own runs the scripts, when the page says so. Why not: a sentence, or "" at
// the end.
std::string ServePage(const std::vector<Script>& scripts, const Subject& subject, uint16_t port,
                      const std::function<bool()>& stopped, const std::function<void(const std::string&)>& say);

}  // namespace weft::impi::tester

#endif  // IMPI_TESTER_RUN_PAGE_SERVER_H_
