#include <algorithm>

#include "base/check.h"
#include "mpi_hybrid/datatype/datatype.h"

namespace weft::mpi {

TypeCursor::TypeCursor(const void* buffer, MPI_Aint count, const Datatype& type)
    : type_(&type), buffer_(reinterpret_cast<uintptr_t>(buffer)), count_(count), total_(count * type.size) {
  Rewind();
}

void TypeCursor::Rewind() {
  position_ = block_ = in_block_ = element_ = 0;
  node_ = 0;
  depth_ = 0;
  flat_ = true;
  stride_ = 0;
  if (total_ == 0 || type_->dense) {
    leaf_ = buffer_;
    length_ = total_;
    blocks_ = 1;
    return;
  }
  const Run& first = type_->layout[0];
  const bool single = type_->layout.size() == 1;
  if (single && first.count == 1) {  // the elements are the blocks
    leaf_ = buffer_ + static_cast<uintptr_t>(first.offset);
    length_ = first.length;
    blocks_ = count_;
    stride_ = type_->extent;
    return;
  }
  flat_ = single && count_ == 1;
  origin_ = buffer_;
  Enter();
}

// Down to the leaf that begins at or below node_.
void TypeCursor::Enter() {
  const Run* run = &type_->layout[node_];
  while (run->body > 0) {
    origin_ += static_cast<uintptr_t>(run->offset);
    levels_[depth_++] = {0, origin_, node_, node_ + 1 + run->body};
    run = &type_->layout[++node_];
  }
  leaf_ = origin_ + static_cast<uintptr_t>(run->offset);
  length_ = run->length;
  blocks_ = run->count;
  stride_ = run->stride;
  block_ = in_block_ = 0;
}

void TypeCursor::NextLeaf() {
  ++node_;
  Climb();
}

void TypeCursor::Climb() {
  while (depth_ > 0) {
    Level& level = levels_[depth_ - 1];
    if (node_ < level.end) {
      origin_ = level.origin;
      return Enter();
    }
    const Run& loop = type_->layout[level.node];
    if (++level.iteration < loop.count) {
      level.origin += static_cast<uintptr_t>(loop.stride);
      origin_ = level.origin;
      node_ = level.node + 1;
      return Enter();
    }
    --depth_;
  }
  if (node_ == type_->layout.size()) {
    ++element_;
    node_ = 0;
  }
  origin_ = buffer_ + static_cast<uintptr_t>(element_ * type_->extent);
  Enter();
}

void TypeCursor::Advance(MPI_Aint bytes) {
  position_ += bytes;
  in_block_ += bytes;
  if (in_block_ < length_) return;
  in_block_ = 0;
  if (++block_ == blocks_ && position_ < total_) NextLeaf();
}

void TypeCursor::SkipBlocks(MPI_Aint blocks) {
  position_ += blocks * length_;
  block_ += blocks;
  if (block_ == blocks_ && position_ < total_) NextLeaf();
}

void TypeCursor::SkipTimes(int depth, MPI_Aint times) {
  Level& level = levels_[depth - 1];
  const Run& loop = type_->layout[level.node];
  position_ += times * loop.length;
  depth_ = depth;
  // As at the end of the last of them.
  level.iteration += times - 1;
  level.origin += static_cast<uintptr_t>((times - 1) * loop.stride);
  node_ = level.end;
  blocks_ = block_ = in_block_ = 0;
  if (position_ < total_) Climb();
}

void TypeCursor::Seek(MPI_Aint position) {
  WEFT_CHECK(position >= 0 && position <= total_);
  if (total_ == 0) return;
  const MPI_Aint leaf_begin = position_ - block_ * length_ - in_block_;
  if (flat_ || (position >= leaf_begin && position < leaf_begin + blocks_ * length_)) {
    block_ = (position - leaf_begin) / length_;
    in_block_ = (position - leaf_begin) % length_;
    position_ = position;
    return;
  }
  if (position == total_) {  // nothing is behind it
    position_ = position;
    blocks_ = block_ = in_block_ = 0;
    return;
  }
  depth_ = 0;
  node_ = 0;
  element_ = position / type_->size;
  origin_ = buffer_ + static_cast<uintptr_t>(element_ * type_->extent);
  MPI_Aint rest = position % type_->size;
  for (;;) {
    const Run& run = type_->layout[node_];
    if (rest >= run.length * run.count) {
      rest -= run.length * run.count;
      node_ += 1 + run.body;
      continue;
    }
    if (run.body == 0) break;
    const MPI_Aint iteration = rest / run.length;
    rest %= run.length;
    origin_ += static_cast<uintptr_t>(run.offset + iteration * run.stride);
    levels_[depth_++] = {iteration, origin_, node_, node_ + 1 + run.body};
    ++node_;
  }
  Enter();
  position_ = position;
  block_ = rest / length_;
  in_block_ = rest % length_;
}

size_t TypeCursor::Next(std::span<iovec> pieces, size_t limit) {
  size_t count = 0;
  while (limit > 0 && position_ < total_) {
    const uintptr_t at = leaf_ + static_cast<uintptr_t>(block_ * stride_ + in_block_);
    const size_t length = std::min(static_cast<size_t>(length_ - in_block_), limit);
    if (count > 0 && reinterpret_cast<uintptr_t>(pieces[count - 1].iov_base) + pieces[count - 1].iov_len == at) {
      pieces[count - 1].iov_len += length;
    } else if (count == pieces.size()) {
      break;
    } else {
      pieces[count++] = {reinterpret_cast<void*>(at), length};
    }
    limit -= length;
    Advance(static_cast<MPI_Aint>(length));
  }
  return count;
}

TypeCursor::Blocks TypeCursor::NextBlocks(size_t limit) {
  if (position_ >= total_ || in_block_ != 0 || length_ == 0) return {};
  const MPI_Aint count = std::min(blocks_ - block_, static_cast<MPI_Aint>(limit) / length_);
  if (count < 2) return {};
  const Blocks found{leaf_ + static_cast<uintptr_t>(block_ * stride_), static_cast<size_t>(count), static_cast<size_t>(length_), stride_};
  SkipBlocks(count);
  return found;
}

}  // namespace weft::mpi
