#include "mpi_hybrid/datatype/testing/type_map.h"

#include <algorithm>

#include "mpi_hybrid/datatype/constructors.h"
#include "mpi_hybrid/datatype/predefined.h"

namespace weft::mpi::testing {
namespace {

using Random = std::mt19937_64;

MPI_Aint Draw(Random& random, MPI_Aint low, MPI_Aint high) {
  return std::uniform_int_distribution<MPI_Aint>(low, high)(random);
}

std::string Text(const std::vector<MPI_Aint>& values) {
  std::string text = "[";
  for (const MPI_Aint value : values) text += std::to_string(value) + " ";
  return text + "]";
}

// `old` at `displacement`, behind what is there.
void AddElement(TypeMap& map, const TypeMap& old, MPI_Aint displacement) {
  for (const Entry& entry : old.entries) map.entries.push_back({entry.basic, entry.displacement + displacement});
  map.alignment = std::max(map.alignment, old.alignment);
  if (!old.has_bounds) return;
  const MPI_Aint lb = old.lb + displacement, ub = old.ub + displacement;
  map.lb = map.has_bounds ? std::min(map.lb, lb) : lb;
  map.ub = map.has_bounds ? std::max(map.ub, ub) : ub;
  map.has_bounds = true;
}

void AddBlock(TypeMap& map, const TypeMap& old, MPI_Aint displacement, MPI_Aint length) {
  for (MPI_Aint i = 0; i < length; ++i) AddElement(map, old, displacement + i * old.extent());
}

void SetBounds(TypeMap& map, MPI_Aint lb, MPI_Aint ub) {
  map.lb = lb;
  map.ub = ub;
  map.has_bounds = lb != 0 || ub != 0 || !map.entries.empty();
}

RandomType MakeBasic(Random& random) {
  static const MPI_Datatype kTypes[] = {
      MPI_CHAR,      MPI_SHORT,     MPI_INT,        MPI_DOUBLE,          MPI_FLOAT, MPI_LONG_DOUBLE, MPI_C_DOUBLE_COMPLEX,
      MPI_FLOAT_INT, MPI_SHORT_INT, MPI_DOUBLE_INT, MPI_LONG_DOUBLE_INT, MPI_2INT,  MPI_BYTE};
  const MPI_Datatype handle = kTypes[Draw(random, 0, std::size(kTypes) - 1)];
  const Basic& basic = *FindBasic(handle);
  RandomType made{Ref<Datatype>(Datatype::Find(handle)), {{{handle, 0}}, 0, basic.extent, true, basic.alignment}, basic.name};
  return made;
}

RandomType MakeContiguousType(Random& random, const RandomType& old) {
  const MPI_Aint count = Draw(random, 0, 4);
  RandomType made{MakeContiguous(count, *old.type), {}, "contiguous(" + std::to_string(count) + ", " + old.text + ")"};
  AddBlock(made.map, old.map, 0, count);
  return made;
}

RandomType MakeVectorType(Random& random, const RandomType& old) {
  const MPI_Aint count = Draw(random, 0, 4), length = Draw(random, 0, 3), stride = Draw(random, -40, 60);
  RandomType made{MakeVector(count, length, stride, *old.type), {},
                  "hvector" + Text({count, length, stride}) + "(" + old.text + ")"};
  for (MPI_Aint i = 0; i < count; ++i) AddBlock(made.map, old.map, i * stride, length);
  return made;
}

RandomType MakeIndexedType(Random& random, const RandomType& old) {
  std::vector<MPI_Aint> lengths, displacements;
  const bool regular = Draw(random, 0, 1) == 1;  // may fold
  const MPI_Aint distance = Draw(random, -30, 50);
  for (MPI_Aint i = Draw(random, 0, 5); i-- > 0;) {
    lengths.push_back(regular ? 1 : Draw(random, 0, 3));
    displacements.push_back(regular ? i * distance : Draw(random, -100, 200));
  }
  RandomType made{MakeIndexed(lengths, displacements, *old.type), {},
                  "hindexed(" + Text(lengths) + Text(displacements) + old.text + ")"};
  for (size_t i = 0; i < lengths.size(); ++i) AddBlock(made.map, old.map, displacements[i], lengths[i]);
  return made;
}

RandomType MakeIndexedBlockType(Random& random, const RandomType& old) {
  std::vector<MPI_Aint> displacements;
  const MPI_Aint length = Draw(random, 0, 3);
  for (MPI_Aint i = Draw(random, 0, 5); i-- > 0;) displacements.push_back(Draw(random, -100, 200));
  RandomType made{MakeIndexedBlock(length, displacements, *old.type), {},
                  "hindexed_block(" + std::to_string(length) + Text(displacements) + old.text + ")"};
  for (const MPI_Aint displacement : displacements) AddBlock(made.map, old.map, displacement, length);
  return made;
}

RandomType MakeStructType(Random& random, const RandomType& first, int depth) {
  std::vector<MPI_Aint> lengths, displacements;
  std::vector<Ref<const Datatype>> types;
  Ref<Datatype> used;
  bool several = false;  // MPICH pads then
  RandomType made;
  made.text = "struct(";
  for (MPI_Aint i = Draw(random, 1, 4); i-- > 0;) {
    const RandomType field = i == 0 ? first : MakeRandomType(random, depth - 2);
    lengths.push_back(Draw(random, 0, 2));
    displacements.push_back(Draw(random, -100, 200));
    types.emplace_back(field.type.get());
    AddBlock(made.map, field.map, displacements.back(), lengths.back());
    made.text += Text({lengths.back(), displacements.back()}) + field.text + ", ";
    if (lengths.back() == 0) continue;
    several = several || (used != nullptr && used != field.type);
    used = field.type;
  }
  made.text += ")";
  const MPI_Aint rest = several && made.map.extent() > 0 ? made.map.extent() % made.map.alignment : 0;
  if (rest != 0) made.map.ub += made.map.alignment - rest;
  made.type = MakeStruct(lengths, displacements, types);
  return made;
}

RandomType MakeResizedType(Random& random, const RandomType& old) {
  // Of an empty type the bounds count as long as they are not upside down.
  const MPI_Aint lb = Draw(random, -50, 50), extent = Draw(random, old.map.entries.empty() ? 1 : -20, 150);
  RandomType made{MakeResized(*old.type, lb, extent), old.map, "resized" + Text({lb, extent}) + "(" + old.text + ")"};
  SetBounds(made.map, lb, lb + extent);
  return made;
}

RandomType MakeSubarrayType(Random& random, const RandomType& old) {
  std::vector<MPI_Aint> sizes, subsizes, starts;
  for (MPI_Aint i = Draw(random, 1, 3); i-- > 0;) {
    sizes.push_back(Draw(random, 1, 4));
    subsizes.push_back(Draw(random, 1, sizes.back()));
    starts.push_back(Draw(random, 0, sizes.back() - subsizes.back()));
  }
  const int order = Draw(random, 0, 1) == 1 ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  RandomType made{MakeSubarray(sizes, subsizes, starts, order, *old.type), {},
                  "subarray" + std::to_string(order) + Text(sizes) + Text(subsizes) + Text(starts) + "(" + old.text + ")"};
  // Every index of the array in the order of memory; those of the part are in it.
  MPI_Aint total = 1;
  for (const MPI_Aint size : sizes) total *= size;
  for (MPI_Aint index = 0; index < total; ++index) {
    bool inside = true;
    MPI_Aint rest = index;
    for (size_t step = 0; step < sizes.size(); ++step) {
      const size_t i = order == MPI_ORDER_FORTRAN ? step : sizes.size() - 1 - step;
      const MPI_Aint at = rest % sizes[i];
      rest /= sizes[i];
      inside = inside && at >= starts[i] && at < starts[i] + subsizes[i];
    }
    if (inside) AddElement(made.map, old.map, index * old.map.extent());
  }
  SetBounds(made.map, 0, total * old.map.extent());
  return made;
}

// Whose element `index` of a dimension is (MPI 4.0 section 5.1.4).
int OwnerOf(MPI_Aint index, MPI_Aint size, int kind, int argument, int processes) {
  if (kind == MPI_DISTRIBUTE_NONE) return 0;
  MPI_Aint block = argument;
  if (argument == MPI_DISTRIBUTE_DFLT_DARG) block = kind == MPI_DISTRIBUTE_BLOCK ? (size + processes - 1) / processes : 1;
  return static_cast<int>(index / block % processes);
}

RandomType MakeDarrayType(Random& random, const RandomType& old) {
  std::vector<MPI_Aint> sizes;
  std::vector<int> kinds, arguments, grid, coordinates;
  int processes = 1;
  for (MPI_Aint i = Draw(random, 1, 3); i-- > 0;) {
    static const int kKinds[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    sizes.push_back(Draw(random, 1, 6));
    kinds.push_back(kKinds[Draw(random, 0, 2)]);
    grid.push_back(kinds.back() == MPI_DISTRIBUTE_NONE ? 1 : static_cast<int>(Draw(random, 1, 3)));
    const MPI_Aint least = kinds.back() == MPI_DISTRIBUTE_BLOCK ? (sizes.back() + grid.back() - 1) / grid.back() : 1;
    const bool standard = Draw(random, 0, 1) == 1;
    arguments.push_back(standard ? MPI_DISTRIBUTE_DFLT_DARG : static_cast<int>(Draw(random, least, least + 2)));
    processes *= grid.back();
  }
  const int rank = static_cast<int>(Draw(random, 0, processes - 1));
  int rest_of_rank = rank;
  coordinates.resize(grid.size());
  for (size_t i = grid.size(); i-- > 0; rest_of_rank /= grid[i]) coordinates[i] = rest_of_rank % grid[i];
  const int order = Draw(random, 0, 1) == 1 ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  RandomType made{MakeDarray({processes, rank, sizes, kinds, arguments, grid, order}, *old.type), {}, "darray(" + old.text + ")"};
  MPI_Aint total = 1;
  for (const MPI_Aint size : sizes) total *= size;
  for (MPI_Aint index = 0; index < total; ++index) {
    bool mine = true;
    MPI_Aint rest = index;
    for (size_t step = 0; step < sizes.size(); ++step) {
      const size_t i = order == MPI_ORDER_FORTRAN ? step : sizes.size() - 1 - step;
      mine = mine && OwnerOf(rest % sizes[i], sizes[i], kinds[i], arguments[i], grid[i]) == coordinates[i];
      rest /= sizes[i];
    }
    if (mine) AddElement(made.map, old.map, index * old.map.extent());
  }
  SetBounds(made.map, 0, total * old.map.extent());
  return made;
}

}  // namespace

RandomType MakeRandomType(Random& random, int depth) {
  if (depth <= 0 || Draw(random, 0, 7) == 0) return MakeBasic(random);
  const RandomType old = MakeRandomType(random, depth - 1);
  if (old.map.entries.size() > 200) return old;
  switch (Draw(random, 0, 8)) {
    case 0: return MakeContiguousType(random, old);
    case 1: return MakeVectorType(random, old);
    case 2: return MakeIndexedType(random, old);
    case 3: return MakeIndexedBlockType(random, old);
    case 4: return MakeStructType(random, old, depth);
    case 5: return MakeResizedType(random, old);
    case 6: return MakeSubarrayType(random, old);
    case 7: return MakeDarrayType(random, old);
    default: return {MakeDuplicate(*old.type), old.map, "dup(" + old.text + ")"};
  }
}

std::vector<MPI_Aint> ByteOffsets(const TypeMap& map, MPI_Aint count) {
  std::vector<MPI_Aint> offsets;
  const auto add = [&](MPI_Aint at, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) offsets.push_back(at + static_cast<MPI_Aint>(i));
  };
  for (MPI_Aint element = 0; element < count; ++element) {
    for (const Entry& entry : map.entries) {
      const Basic& basic = *FindBasic(entry.basic);
      const MPI_Aint at = element * map.extent() + entry.displacement;
      if (basic.kind == BasicKind::kPair) {
        add(at, FindBasic(basic.first)->size);
        add(at + basic.second_offset, FindBasic(basic.second)->size);
      } else {
        add(at, basic.size);
      }
    }
  }
  return offsets;
}

}  // namespace weft::mpi::testing
