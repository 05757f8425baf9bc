#include "mpi_hybrid/host/own_words.h"

#include <algorithm>
#include <vector>

namespace weft::mpi::host {
namespace {

std::vector<const OwnWords*>& All() {
  static auto* const all = new std::vector<const OwnWords*>;  // used until the process ends
  return *all;
}

}  // namespace

OwnWords::OwnWords() { All().push_back(this); }

OwnWords::~OwnWords() { All().erase(std::find(All().begin(), All().end(), this)); }

std::string OwnWords::FindOverwritten() {
  for (const OwnWords* const words : All()) {
    if (std::string what = words->Overwritten(); !what.empty()) return what + " was overwritten: another process wrote into the memory of the host's ranks";
  }
  return {};
}

}  // namespace weft::mpi::host
