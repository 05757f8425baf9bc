#ifndef PMI_CHOSEN_HOSTS_H_
#define PMI_CHOSEN_HOSTS_H_

#include <string>

#include "pmi/launch/options.h"

namespace weft::pmi {

// Completes `options->hosts` before a start: the hosts of a batch system's allocation where the command line names none, with the batch system's way to start
// programs on them; and without this host after -skip-launch-node. Looking up names can take 5 seconds. Returns why there are no hosts, or empty.
std::string ChooseHosts(Options* options);

}  // namespace weft::pmi

#endif  // PMI_CHOSEN_HOSTS_H_
