#include "mpi_hybrid/coll/group_tree.h"

#include <mpi.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "mpi_hybrid/p2p/message.h"

namespace weft::mpi {
namespace {

const Datatype& ByteType() { return *Datatype::Find(MPI_BYTE); }

}  // namespace

GroupTree::GroupTree(Comm& parent, const Group& group, int tag, int root)
    : parent_(parent),
      group_(group),
      tag_(tag),
      root_(root),
      place_((group.RankOf(parent.local->members[static_cast<size_t>(parent.rank)]) - root + group.size()) % group.size()) {
  WEFT_CHECK(!parent.inter);
}

int GroupTree::RankAt(int place) const {
  const int rank = (place + root_) % group_.size();
  return parent_.local->RankOf(group_.members[static_cast<size_t>(rank)]);
}

void GroupTree::Put(const void* data, size_t bytes, int place) const {
  (void)Send(data, static_cast<MPI_Aint>(bytes), ByteType(), RankAt(place), tag_, parent_, SendMode::kStandard, Channel::kCollective);
}

// Exactly `bytes`: whoever has failed says nothing in their place.
Error GroupTree::Get(void* data, size_t bytes, int place) const {
  MPI_Status status{};
  WEFT_MPI_TRY(Receive(data, static_cast<MPI_Aint>(bytes), ByteType(), RankAt(place), tag_, parent_, Channel::kCollective, &status));
  if (GetCount(status) == static_cast<MPI_Aint>(bytes)) return {};
  return Error(MPI_ERR_OTHER, "rank " + std::to_string((place + root_) % group_.size()) + " of the group had an error");
}

std::vector<int> GroupTree::Children() const {
  std::vector<int> places;
  for (int mask = 1; place_ + mask < group_.size() && (place_ & mask) == 0; mask *= 2) places.push_back(place_ + mask);
  return places;
}

int GroupTree::Above() const { return place_ & (place_ - 1); }

Error GroupTree::And(std::span<uint64_t> words, const AtRoot& at_root) {
  Error first;
  const auto note = [&](Error error) {
    if (!error.ok()) std::fill(words.begin(), words.end(), 0);
    if (!error.ok() && first.ok()) first = std::move(error);
  };
  std::vector<uint64_t> other(words.size());
  const std::vector<int> children = Children();
  for (const int child : children) {
    note(Get(other.data(), other.size() * sizeof(uint64_t), child));
    for (size_t i = 0; i < words.size() && first.ok(); ++i) words[i] &= other[i];
  }
  if (place_ != 0) {
    Put(words.data(), words.size_bytes(), Above());
    note(Get(words.data(), words.size_bytes(), Above()));
    if (!first.ok()) std::fill(words.begin(), words.end(), 0);
  } else if (at_root) {
    note(at_root(words));
  }
  for (auto child = children.rbegin(); child != children.rend(); ++child) Put(words.data(), words.size_bytes(), *child);
  return first;
}

Error GroupTree::Tell(void* data, size_t bytes) {
  Error heard;
  if (place_ != 0) heard = Get(data, bytes, Above());
  const std::vector<int> children = Children();
  for (auto child = children.rbegin(); child != children.rend(); ++child) Put(data, heard.ok() ? bytes : 0, *child);
  return heard;
}

}  // namespace weft::mpi
