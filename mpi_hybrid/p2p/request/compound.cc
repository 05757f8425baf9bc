#include "mpi_hybrid/p2p/request/compound.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace weft::mpi {

void CompoundRequest::Follow(Request* inner) {
  const auto place = std::find(inner_.begin(), inner_.end(), nullptr);
  WEFT_CHECK(place != inner_.end());
  *place = inner;
  if (inner->complete) return Ended(*inner);
  inner->outer = this;
  AddRef();  // until it completes
}

void CompoundRequest::InnerDone(Request& inner) {
  Ended(inner);
  Release();
}

void CompoundRequest::Drop() {
  for (Request*& at : inner_) {
    Request* const inner = std::exchange(at, nullptr);
    if (inner == nullptr) continue;
    inner->outer = nullptr;
    inner->Release();
  }
}

}  // namespace weft::mpi
