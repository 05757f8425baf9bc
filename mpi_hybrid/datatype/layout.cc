#include "mpi_hybrid/datatype/layout.h"

#include <algorithm>

namespace weft::mpi {

void LayoutBuilder::Append(std::span<const Run> runs, MPI_Aint displacement) {
  for (size_t i = 0; i < runs.size(); i += 1 + runs[i].body) {
    Run run = runs[i];
    run.offset += displacement;
    if (run.body == 0) {
      AppendLeaf(run);
      continue;
    }
    Close();
    closed_ = kNone;
    runs_.push_back(run);
    runs_.insert(runs_.end(), runs.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                 runs.begin() + static_cast<std::ptrdiff_t>(i) + 1 + run.body);
  }
}

namespace {

// Makes `run` part of `last`, if it goes on with equal blocks at an equal distance.
bool Continue(Run& last, const Run& run) {
  MPI_Aint whole, distance;
  if (last.length != run.length || __builtin_sub_overflow(run.offset, last.offset, &distance)) return false;
  if (last.count > 1) {
    if (__builtin_mul_overflow(last.count, last.stride, &whole) || distance != whole) return false;
    distance = last.stride;
  }
  if (run.count > 1 && run.stride != distance) return false;
  last.stride = distance;
  last.count += run.count;
  return true;
}

}  // namespace

// Blocks that touch are put together before equal distances are looked for.
void LayoutBuilder::AppendLeaf(const Run& run) {
  if (open_ && runs_.back().count == 1 && run.count == 1 && runs_.back().offset + runs_.back().length == run.offset) {
    runs_.back().length += run.length;
    return;
  }
  Close();
  runs_.push_back(run);
  open_ = true;
}

void LayoutBuilder::Close() {
  if (!open_) return;
  open_ = false;
  if (closed_ != kNone && Continue(runs_[closed_], runs_.back())) {
    runs_.pop_back();
  } else {
    closed_ = runs_.size() - 1;
  }
}

std::vector<Run> LayoutBuilder::Take() {
  Close();
  return std::move(runs_);
}

namespace {

int LoopDepth(std::span<const Run> runs) {
  int depth = 0;
  for (size_t i = 0; i < runs.size(); i += 1 + runs[i].body) {
    if (runs[i].body > 0) depth = std::max(depth, 1 + LoopDepth(runs.subspan(i + 1, runs[i].body)));
  }
  return depth;
}

// The repetition of a single run without another loop, where that is possible.
bool Grow(Run& run, MPI_Aint count, MPI_Aint stride) {
  if (run.count == 1 && run.body == 0) {
    if (stride == run.length) {
      run.length *= count;
    } else {
      run.count = count;
      run.stride = stride;
    }
    return true;
  }
  if (stride != run.count * run.stride) return false;
  run.count *= count;
  return true;
}

}  // namespace

std::vector<Run> Repeat(std::vector<Run> runs, MPI_Aint count, MPI_Aint stride) {
  if (count == 0) return {};
  if (count == 1 || runs.empty()) return runs;
  if (runs[0].body + 1 == runs.size() && Grow(runs[0], count, stride)) return runs;
  if (LoopDepth(runs) == kMaxLoops) {
    LayoutBuilder unrolled;
    for (MPI_Aint i = 0; i < count; ++i) unrolled.Append(runs, i * stride);
    return unrolled.Take();
  }
  const Run loop{0, DataBytes(runs), count, stride, static_cast<uint32_t>(runs.size())};
  runs.insert(runs.begin(), loop);
  return runs;
}

MPI_Aint DataBytes(std::span<const Run> runs) {
  MPI_Aint bytes = 0;
  for (size_t i = 0; i < runs.size(); i += 1 + runs[i].body) bytes += runs[i].length * runs[i].count;
  return bytes;
}

MPI_Aint CountPieces(std::span<const Run> runs) {
  MPI_Aint pieces = 0;
  for (size_t i = 0; i < runs.size(); i += 1 + runs[i].body) {
    pieces += runs[i].count * (runs[i].body == 0 ? 1 : CountPieces(runs.subspan(i + 1, runs[i].body)));
  }
  return pieces;
}

void SignatureBuilder::Append(std::span<const SignaturePart> parts) {
  if (parts.empty()) return;
  if (!parts_.empty() && parts_[last_].body == 0 && parts[0].body == 0 && parts_[last_].basic == parts[0].basic) {
    parts_[last_].count += parts[0].count;
    parts = parts.subspan(1);
  }
  for (size_t i = 0; i < parts.size(); i += 1 + parts[i].body) last_ = parts_.size() + i;
  parts_.insert(parts_.end(), parts.begin(), parts.end());
}

std::vector<SignaturePart> Repeat(std::vector<SignaturePart> signature, MPI_Aint count) {
  if (count == 0) return {};
  if (count == 1 || signature.empty()) return signature;
  if (signature[0].body + 1 == signature.size()) {
    signature[0].count *= count;
    return signature;
  }
  signature.insert(signature.begin(), SignaturePart{MPI_DATATYPE_NULL, count, static_cast<uint32_t>(signature.size())});
  return signature;
}

}  // namespace weft::mpi
