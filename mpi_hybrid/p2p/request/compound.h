#ifndef MPI_HYBRID_P2P_REQUEST_COMPOUND_H_
#define MPI_HYBRID_P2P_REQUEST_COMPOUND_H_

#include <array>

#include "mpi_hybrid/p2p/request/request.h"

namespace weft::mpi {

// A request that is made of others, at most two at a time, whose references it holds.
class CompoundRequest : public Request {
 public:
  ~CompoundRequest() override { Drop(); }

 protected:
  using Request::Request;

  // Takes the caller's reference. Ended(inner) follows when the inner one is complete, which may be before this
  // returns; until then this request lives.
  void Follow(Request* inner);
  // Of an inner one that has its status and error. May complete this request; may not communicate.
  virtual void Ended(Request& inner) = 0;
  // Lets go of the inner ones, which may still be under way.
  void Drop();

 private:
  void InnerDone(Request& inner) final;

  std::array<Request*, 2> inner_{};
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_REQUEST_COMPOUND_H_
