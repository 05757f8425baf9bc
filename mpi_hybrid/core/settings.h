#ifndef MPI_HYBRID_CORE_SETTINGS_H_
#define MPI_HYBRID_CORE_SETTINGS_H_

#include <span>
#include <string>

namespace weft::mpi {

// The MPI library's own settings, and PMI's, each an environment variable that the layer named reads itself. The table is for MPI_T's control
// variables, for the documentation, and for finding names that are not settings.
struct SettingInfo {
  const char* name;     // "WEFT_MPI_HOST"
  const char* initial;  // the default in words
  const char* help;     // one sentence
  const char* choices = "";  // "tcp|sctp"; what is none of them is as `initial`, or refused
};
std::span<const SettingInfo> AllSettings();

// Why a variable of the environment that begins with WEFT_MPI_ is not one of the settings; empty when all are.
std::string UnknownSetting();

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_SETTINGS_H_
