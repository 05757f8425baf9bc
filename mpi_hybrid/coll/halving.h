#ifndef MPI_HYBRID_COLL_HALVING_H_
#define MPI_HYBRID_COLL_HALVING_H_

#include <span>
#include <vector>

#include "mpi_hybrid/coll/algorithms.h"

namespace weft::mpi {

// Reduce-scatter by recursive halving (the first half of Rabenseifner's algorithm), for commutative operations. A power
// of two of the ranks take part and get virtual ranks 0, 1, ... Each of the other ranks gives its vector to the
// neighbour that it is paired with: (0, 1), (2, 3), ... The vector is divided into one block per virtual rank, in their
// order. Virtual ranks that are far apart exchange the longest pieces.
class Halving {
 public:
  // Divides the vector into blocks of as equal length as possible. `keeper`: a rank that takes part. Virtual ranks that
  // are far apart are neighbours by rank, which often share a host: their numbers have the bits in reverse order. This
  // order of the reduction is also that of recursive doubling.
  Halving(Place place, int keeper, MPI_Aint count);
  // The block of a virtual rank contains the elements of the real ranks that it stands for: counts[r] elements for rank
  // r. Virtual ranks are in the order of ranks.
  Halving(Place place, std::span<const MPI_Aint> counts);

  int participants() const { return participants_; }
  bool takes_part() const { return me_ >= 0; }
  int me() const { return me_; }  // virtual rank
  int Real(int virtual_rank) const;
  int Virtual(int rank) const;  // of a rank that takes part
  MPI_Aint Begin(int block) const { return begin_[static_cast<size_t>(block)]; }
  MPI_Aint Length(int first, int blocks) const { return Begin(first + blocks) - Begin(first); }
  // The rank that this one is paired with; -1: none.
  int other() const { return place_.rank < 2 * extra_ ? place_.rank ^ 1 : -1; }

  // After the schedule, block me() of `full` holds the result; the other blocks are undefined. `full` has space for the
  // whole vector and may be the send buffer.
  void ReduceBlocks(Schedule& schedule, const Reduction& reduction, void* full) const;
  // Each rank that takes part sends `full` to the rank that it is paired with.
  void GiveToOthers(Schedule& schedule, const Reduction& reduction, void* full) const;

 private:
  void SetMe();
  int InOrder(int number) const { return is_reversed_ ? ReversedBits(number, participants_) : number; }

  Place place_;
  int participants_, extra_;  // extra: ranks that do not take part
  bool is_reversed_ = false;  // the order of virtual ranks
  int keeper_ = -1;           // takes part instead of its neighbour of even rank
  int me_ = -1;
  std::vector<MPI_Aint> begin_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_HALVING_H_
