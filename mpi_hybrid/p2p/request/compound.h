#ifndef MPI_HYBRID_P2P_REQUEST_COMPOUND_H_
#define MPI_HYBRID_P2P_REQUEST_COMPOUND_H_

#include <array>

#include "mpi_hybrid/p2p/request/request.h"

namespace weft::mpi {

// A request made of other requests, at most two at a time, to which it holds references.
class CompoundRequest : public Request {
 public:
  ~CompoundRequest() override { Drop(); }

 protected:
  using Request::Request;

  // Takes the caller's reference. Ended(inner) is called when the inner request is complete, perhaps before this
  // returns. This request lives until then.
  void Follow(Request* inner);
  // The inner request is complete, with status and error. May complete this request; must not communicate.
  virtual void Ended(Request& inner) = 0;
  // Releases the inner requests, which may still be pending.
  void Drop();

 private:
  void InnerDone(Request& inner) final;

  std::array<Request*, 2> inner_{};
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_REQUEST_COMPOUND_H_
