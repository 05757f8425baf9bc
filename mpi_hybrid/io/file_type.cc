#include "mpi_hybrid/io/file_type.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mpi_hybrid/datatype/constructors.h"

namespace weft::mpi::io {
namespace {

using Numbers = std::vector<MPI_Aint>;

// What a constructor was given, whichever of the two bindings it was called by: that with large counts keeps them and displacements
// in one list.
class Given {
 public:
  explicit Given(const TypeContents& contents) : contents_(contents) {
    if (contents.counts.empty()) {
      numbers_.assign(contents.integers.begin(), contents.integers.end());
    } else {
      numbers_.assign(contents.counts.begin(), contents.counts.end());
    }
  }

  bool large() const { return !contents_.counts.empty(); }
  MPI_Aint Next() { return next_ < numbers_.size() ? numbers_[next_++] : 0; }
  Numbers Next(size_t n) {
    Numbers list;
    for (size_t i = 0; i < n; ++i) list.push_back(Next());
    return list;
  }
  // Those in bytes.
  MPI_Aint NextAddress() {
    if (large()) return Next();
    return next_address_ < contents_.addresses.size() ? contents_.addresses[next_address_++] : 0;
  }
  Numbers NextAddresses(size_t n) {
    Numbers list;
    for (size_t i = 0; i < n; ++i) list.push_back(NextAddress());
    return list;
  }

 private:
  const TypeContents& contents_;
  Numbers numbers_;
  size_t next_ = 0, next_address_ = 0;
};

// Takes a type apart and puts it together again.
class Remaker {
 public:
  explicit Remaker(const BasicSize& size_of) : size_of_(size_of) {}

  Error Make(const Datatype& type, Ref<const Datatype>* made) {
    const TypeContents& contents = type.contents;
    if (contents.combiner == MPI_COMBINER_NAMED || contents.types.empty()) return MakeBasic(type, made);
    std::vector<Ref<const Datatype>> old(contents.types.size());
    for (size_t i = 0; i < old.size(); ++i) WEFT_MPI_TRY(Make(*contents.types[i], &old[i]));
    Ref<Datatype> result = Put(contents, old);
    if (!result) {
      return Error(MPI_ERR_UNSUPPORTED_DATAREP,
                   "a type of combiner " + std::to_string(contents.combiner) + " is too large in this data representation");
    }
    *made = Ref<const Datatype>(result.get());
    return {};
  }

 private:
  // F90 types have no contents but are basic: what they duplicate tells what they are.
  Error MakeBasic(const Datatype& type, Ref<const Datatype>* made) {
    MPI_Aint bytes = 0;
    WEFT_MPI_TRY(size_of_(type.OnlyBasic() != MPI_DATATYPE_NULL ? type.OnlyBasic() : type.handle, &bytes));
    *made = Ref<const Datatype>(MakeContiguous(bytes, *Datatype::Find(MPI_BYTE)).get());
    return {};
  }

  static Numbers Scaled(Numbers list, MPI_Aint unit) {
    for (MPI_Aint& value : list) value *= unit;
    return list;
  }

  static Ref<Datatype> Put(const TypeContents& contents, const std::vector<Ref<const Datatype>>& types) {
    Given given(contents);
    const Datatype& old = *types[0];
    switch (contents.combiner) {
      case MPI_COMBINER_DUP:
        return MakeDuplicate(old);
      case MPI_COMBINER_CONTIGUOUS:
        return MakeContiguous(given.Next(), old);
      case MPI_COMBINER_VECTOR:
      case MPI_COMBINER_HVECTOR:
      case MPI_COMBINER_HVECTOR_INTEGER: {
        const MPI_Aint count = given.Next(), length = given.Next();
        const MPI_Aint stride = contents.combiner == MPI_COMBINER_HVECTOR ? given.NextAddress() : given.Next();
        return MakeVector(count, length, contents.combiner == MPI_COMBINER_VECTOR ? stride * old.extent : stride, old);
      }
      case MPI_COMBINER_INDEXED:
      case MPI_COMBINER_HINDEXED: {
        const auto n = static_cast<size_t>(given.Next());
        const Numbers lengths = given.Next(n);
        return MakeIndexed(lengths, contents.combiner == MPI_COMBINER_INDEXED ? Scaled(given.Next(n), old.extent) : given.NextAddresses(n),
                           old);
      }
      case MPI_COMBINER_INDEXED_BLOCK:
      case MPI_COMBINER_HINDEXED_BLOCK: {
        const auto n = static_cast<size_t>(given.Next());
        const MPI_Aint length = given.Next();
        return MakeIndexedBlock(
            length, contents.combiner == MPI_COMBINER_INDEXED_BLOCK ? Scaled(given.Next(n), old.extent) : given.NextAddresses(n), old);
      }
      case MPI_COMBINER_STRUCT: {
        const auto n = static_cast<size_t>(given.Next());
        const Numbers lengths = given.Next(n);
        return MakeStruct(lengths, given.NextAddresses(n), types);
      }
      case MPI_COMBINER_RESIZED: {
        const MPI_Aint lb = given.NextAddress();
        return MakeResized(old, lb, given.NextAddress());
      }
      case MPI_COMBINER_SUBARRAY: {
        const auto n = static_cast<size_t>(given.large() ? contents.integers[0] : given.Next());
        const Numbers sizes = given.Next(n), subsizes = given.Next(n), starts = given.Next(n);
        return MakeSubarray(sizes, subsizes, starts, contents.integers.back(), old);
      }
      case MPI_COMBINER_DARRAY:
        return PutDarray(contents, given, old);
      default:
        return nullptr;
    }
  }

  static Ref<Datatype> PutDarray(const TypeContents& contents, Given& given, const Datatype& old) {
    const std::vector<int>& integers = contents.integers;
    const auto n = static_cast<size_t>(integers[2]);
    Numbers sizes;
    size_t at = 3;
    if (given.large()) {
      sizes = given.Next(n);
    } else {
      sizes.assign(integers.begin() + 3, integers.begin() + 3 + static_cast<ptrdiff_t>(n));
      at += n;
    }
    const std::span<const int> rest(integers.data() + at, 3 * n);
    Distribution distribution;
    distribution.processes = integers[0];
    distribution.rank = integers[1];
    distribution.sizes = sizes;
    distribution.kinds = rest.subspan(0, n);
    distribution.arguments = rest.subspan(n, n);
    distribution.grid = rest.subspan(2 * n, n);
    distribution.order = integers.back();
    return MakeDarray(distribution, old);
  }

  const BasicSize& size_of_;
};

// Where the data of a part of a layout begins and ends, relative to its origin.
struct Reach {
  MPI_Aint first = 0, last = 0, end = 0;  // first and last displacement of a block; end of the last block
};

// Checks that what comes next, at `origin`, follows `before`.
void Follow(const Reach& before, const Reach& next, MPI_Aint origin, LayoutOrder* order) {
  if (next.first + origin < before.last) order->monotonic = false;
  if (next.first + origin < before.end) order->disjoint = false;
}

Reach ReachOf(std::span<const Run> runs, LayoutOrder* order);

Reach ReachOfRun(std::span<const Run> runs, LayoutOrder* order) {
  const Run& run = runs[0];
  const Reach once = run.body == 0 ? Reach{0, 0, run.length} : ReachOf(runs.subspan(1, run.body), order);
  if (run.count > 1) Follow(once, once, run.stride, order);
  const MPI_Aint last = run.offset + (run.count - 1) * run.stride;
  return {run.offset + once.first, last + once.last, last + once.end};
}

Reach ReachOf(std::span<const Run> runs, LayoutOrder* order) {
  Reach all;
  for (size_t i = 0; i < runs.size(); i += 1 + runs[i].body) {
    const Reach one = ReachOfRun(runs.subspan(i), order);
    if (i == 0) {
      all = one;
      continue;
    }
    Follow(all, one, 0, order);
    all.last = one.last;
    all.end = one.end;
  }
  return all;
}

}  // namespace

Error MakeFileType(const Datatype& type, const BasicSize& size_of, Ref<const Datatype>* made) { return Remaker(size_of).Make(type, made); }

LayoutOrder OrderOf(const Datatype& type) {
  LayoutOrder order;
  if (type.layout.empty()) return order;
  const Reach all = ReachOf(type.layout, &order);
  if (all.first < 0) order.monotonic = false;
  Follow(all, all, type.extent, &order);
  return order;
}

}  // namespace weft::mpi::io
