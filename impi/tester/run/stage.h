#ifndef IMPI_TESTER_RUN_STAGE_H_
#define IMPI_TESTER_RUN_STAGE_H_

#include <functional>
#include <string>
#include <vector>

#include "impi/tester/run/verdict.h"
#include "impi/tester/script.h"

namespace weft::impi::tester {

// Carries out `script` with sockets, and with the implementation under test as a child process. `say`: what the user
// has to do, if there is no command. `progress`: how many
// steps are done, several times a second; false: the script is given up.
Verdict RunScript(const Script& script, const Subject& subject, const std::function<void(const std::string&)>& say,
                  const std::function<bool(size_t)>& progress);

// The command line for a script. A server is started with "-server N" and the script's options behind the command
// (section 2.2.1), unless the command has placeholders itself: {clients}, {options}; of a client {server}, {client},
// {ranks}, {script} and {options}.
std::vector<std::string> CommandFor(const Script& script, const std::vector<std::string>& command,
                                    const std::string& server);

}  // namespace weft::impi::tester

#endif  // IMPI_TESTER_RUN_STAGE_H_
