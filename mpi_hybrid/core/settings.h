#ifndef MPI_HYBRID_CORE_SETTINGS_H_
#define MPI_HYBRID_CORE_SETTINGS_H_

#include <span>
#include <string>

namespace weft::mpi {

// The settings of the MPI library and of PMI. Each is an environment variable that its layer reads itself. This table
// serves the control variables of MPI_T, the documentation, and the search for names that are not settings.
struct SettingInfo {
  const char* name;     // "WEFT_MPI_HOST"
  const char* initial;  // the default in words
  const char* help;     // one sentence
  const char* choices = "";  // "tcp|sctp"; any other value means `initial`, or is refused
};
std::span<const SettingInfo> AllSettings();

// Describes an environment variable that begins with WEFT_MPI_ and is not a setting; empty if there is none.
std::string UnknownSetting();

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_SETTINGS_H_
