#include "mpi_hybrid/datatype/signature.h"

#include <algorithm>
#include <limits>
#include <span>

#include "mpi_hybrid/datatype/predefined.h"

namespace weft::mpi {
namespace {

using Parts = std::span<const SignaturePart>;

Parts Body(Parts parts, size_t loop) { return parts.subspan(loop + 1, parts[loop].body); }

MPI_Count BasicsOf(const Basic& basic) { return basic.kind == BasicKind::kPair ? 2 : 1; }

struct Total {
  MPI_Count bytes = 0;
  MPI_Count basics = 0;
};

Total Sum(Parts parts) {
  Total total;
  for (size_t i = 0; i < parts.size(); i += 1 + parts[i].body) {
    Total one;
    if (parts[i].body > 0) {
      one = Sum(Body(parts, i));
    } else {
      const Basic& basic = *FindBasic(parts[i].basic);
      one = {basic.size, BasicsOf(basic)};
    }
    total.bytes += parts[i].count * one.bytes;
    total.basics += parts[i].count * one.basics;
  }
  return total;
}

// The first half of a pair.
void TakePair(const Basic& basic, MPI_Count Total::*measured, Total& left, Total& taken) {
  const Total first{FindBasic(basic.first)->size, 1};
  if (left.*measured < first.*measured) return;
  left.*measured -= first.*measured;
  taken.bytes += first.bytes;
  taken.basics += first.basics;
}

// Adds to `taken` what `left.*measured` bytes or basics hold, and takes it off there. What is left then is less than a basic
// element.
void Take(Parts parts, MPI_Count Total::*measured, Total& left, Total& taken) {
  for (size_t i = 0; i < parts.size() && left.*measured > 0; i += 1 + parts[i].body) {
    const Basic* basic = parts[i].body > 0 ? nullptr : FindBasic(parts[i].basic);
    const Total one = basic != nullptr ? Total{basic->size, BasicsOf(*basic)} : Sum(Body(parts, i));
    const MPI_Count whole = std::min<MPI_Count>(parts[i].count, left.*measured / (one.*measured));
    taken.bytes += whole * one.bytes;
    taken.basics += whole * one.basics;
    left.*measured -= whole * (one.*measured);
    if (whole == parts[i].count) continue;
    if (basic == nullptr) {
      Take(Body(parts, i), measured, left, taken);
    } else if (basic->kind == BasicKind::kPair) {
      TakePair(*basic, measured, left, taken);
    }
    return;
  }
}

bool SameKind(MPI_Datatype a, MPI_Datatype b) {
  if (a == b) return true;
  const Basic &x = *FindBasic(a), &y = *FindBasic(b);
  return x.kind == y.kind && x.size == y.size;
}

}  // namespace

MPI_Count CountBasics(const Datatype& type) { return Sum(type.signature).basics; }

MPI_Count BasicsIn(MPI_Count bytes, const Datatype& type) {
  if (type.size == 0) return bytes == 0 ? 0 : MPI_UNDEFINED;
  const MPI_Count whole = bytes / type.size;
  Total left{bytes % type.size, 0};
  Total taken{0, whole * CountBasics(type)};
  Take(type.signature, &Total::bytes, left, taken);
  return left.bytes == 0 ? taken.basics : MPI_UNDEFINED;
}

MPI_Count BytesOfBasics(MPI_Count basics, const Datatype& type) {
  const MPI_Count each = CountBasics(type);
  if (each == 0) return 0;
  Total left{0, basics % each};
  Total taken{basics / each * type.size, 0};
  Take(type.signature, &Total::basics, left, taken);
  return taken.bytes;
}

bool SignaturesMatch(const Datatype& a, MPI_Count a_count, const Datatype& b, MPI_Count b_count) {
  if (&a == &b || a.OnlyBasic() == MPI_PACKED || b.OnlyBasic() == MPI_PACKED) return true;
  if (a.OnlyBasic() != MPI_DATATYPE_NULL && b.OnlyBasic() != MPI_DATATYPE_NULL) {
    return SameKind(a.OnlyBasic(), b.OnlyBasic());
  }
  SignatureCursor x(a, a_count), y(b, b_count);
  while (!x.done() && !y.done()) {
    if (!SameKind(x.basic(), y.basic())) return false;
    const MPI_Count both = std::min(x.left(), y.left());
    x.Advance(both);
    y.Advance(both);
  }
  return true;
}

SignatureCursor::SignatureCursor(const Datatype& type, MPI_Count count)
    : type_(&type), repeats_(type.signature.empty() ? 0 : count) {
  if (repeats_ == 0) return;
  part_ = type.signature.data();
  if (type.signature.size() > 1) {
    Enter();
    return;
  }
  repeats_ = 1;  // one run
  if (__builtin_mul_overflow(part_->count, count, &left_)) left_ = std::numeric_limits<MPI_Count>::max();
}

void SignatureCursor::Enter() {
  for (; part_->body > 0; ++part_) loops_.push_back({part_, part_->count});
  left_ = part_->count;
}

void SignatureCursor::Advance(MPI_Count basics) {
  left_ -= basics;
  if (left_ > 0) return;
  ++part_;
  while (!loops_.empty() && part_ == loops_.back().part + 1 + loops_.back().part->body) {
    if (--loops_.back().left > 0) {
      part_ = loops_.back().part + 1;
      break;
    }
    loops_.pop_back();
  }
  if (loops_.empty() && part_ == type_->signature.data() + type_->signature.size()) {
    if (--repeats_ == 0) return;
    part_ = type_->signature.data();
  }
  Enter();
}

}  // namespace weft::mpi
