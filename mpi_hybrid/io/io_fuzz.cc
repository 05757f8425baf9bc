// What this layer reads of others: lists of ranges and hints from other ranks, info of the program, and files in external32. The first byte of
// an input says which.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "mpi_hybrid/core/info.h"
#include "mpi_hybrid/datatype/constructors.h"
#include "mpi_hybrid/io/hints.h"
#include "mpi_hybrid/io/representation.h"
#include "mpi_hybrid/io/two_phase_messages.h"
#include "mpi_hybrid/io/view.h"

namespace weft::mpi::io {
namespace {

using Bytes = std::span<const uint8_t>;

// Numbers from the front of an input; zeros when it is used up.
class Numbers {
 public:
  explicit Numbers(Bytes bytes) : bytes_(bytes) {}
  template <typename T>
  T Next() {
    T value = {};
    const size_t size = std::min(sizeof value, bytes_.size());
    if (size > 0) std::memcpy(&value, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
    return value;
  }
  int Below(int bound) { return Next<uint8_t>() % bound; }
  Bytes rest() const { return bytes_; }

 private:
  Bytes bytes_;
};

// A list that is taken has nothing outside of the window, and as many bytes as it says.
void ReadList(Numbers numbers) {
  const FileRange window = {numbers.Next<uint16_t>() * int64_t{1} << numbers.Below(44), 1 + numbers.Next<uint16_t>()};
  const int64_t most = numbers.Next<int64_t>() & INT64_MAX, gap = numbers.Below(2) * 100;
  WindowList list;
  if (!WindowList::Parse(numbers.rest(), window, most, &list)) {
    WEFT_CHECK(list.runs.empty() && list.next == kNowhere);
    return;
  }
  int64_t sum = 0, before = window.offset;
  RunReader reader(list.runs);
  for (FileRange range; reader.Next(&range);) {
    WEFT_CHECK(range.bytes > 0 && range.offset >= before && range.end() <= window.end());
    before = range.offset;
    sum += range.bytes;
  }
  WEFT_CHECK(sum == list.bytes && sum <= most && list.next >= window.end());
  MergedRanges merged({list.runs, list.runs}, gap);
  int64_t covered = 0, end = window.offset;
  for (FileRange range; merged.Next(&range);) {
    WEFT_CHECK(range.bytes > 0 && range.offset >= end && range.end() <= window.end());
    end = range.end();
    covered += range.bytes;
  }
  WEFT_CHECK(covered <= window.bytes && (covered > 0) == (sum > 0));
  WEFT_CHECK(list.Serialize().size() == numbers.rest().size());
}

void CheckBounds(const Hints& hints) {
  WEFT_CHECK(hints.cb_nodes >= 0 && hints.cb_nodes <= 1 << 20);
  for (const int64_t bytes : {hints.cb_buffer_size, hints.ind_rd_buffer_size, hints.ind_wr_buffer_size}) WEFT_CHECK(bytes >= 4096 && bytes <= 1 << 30);
}

// Lines of KEY=VALUE. What is told of them is in bounds, and means the same when it is taken again.
void ReadInfo(Bytes text) {
  Info info;
  std::string key, value;
  std::string* word = &key;
  for (const uint8_t byte : text) {
    if (byte == '\n') {
      info.Set(key, value);
      key.clear(), value.clear();
      word = &key;
    } else if (byte == '=' && word == &key) {
      word = &value;
    } else {
      *word += static_cast<char>(byte);
    }
  }
  info.Set(key, value);
  Hints hints, again;
  hints.Take(info);
  CheckBounds(hints);
  Info told, told_again;
  hints.Tell(static_cast<int>(hints.cb_nodes), &told);
  again.Take(told);
  again.Tell(static_cast<int>(again.cb_nodes), &told_again);
  WEFT_CHECK(told.entries == told_again.entries);
}

void ReadHints(Numbers numbers) {
  Hints hints;
  std::memcpy(&hints, numbers.rest().data(), std::min(sizeof hints, numbers.rest().size()));
  hints.Clamp();
  CheckBounds(hints);
  Info told;
  hints.Tell(1, &told);
  const auto extent = numbers.Next<Extent>();
  if (extent.MakesSense() && extent.bytes > 0) WEFT_CHECK(extent.first >= 0 && extent.first < extent.end && extent.end <= View::kMostBytes);
  const auto go = numbers.Next<Go>();
  const FileRange window = {numbers.Next<uint32_t>(), 1 + numbers.Next<uint16_t>()};
  if (go.MakesSense(window, window.end() + numbers.Next<uint16_t>(), kNowhere)) WEFT_CHECK(go.next >= window.end());
}

// A type of ascending blocks of what the input names.
Ref<Datatype> ReadType(Numbers* numbers) {
  static constexpr MPI_Datatype kBasics[] = {MPI_BYTE, MPI_CHAR, MPI_SHORT, MPI_INT, MPI_LONG, MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_WCHAR, MPI_C_BOOL,
                                             MPI_C_DOUBLE_COMPLEX, MPI_DOUBLE_INT};
  std::vector<MPI_Aint> lengths, displacements;
  std::vector<Ref<const Datatype>> types;
  MPI_Aint end = 0;
  for (int blocks = 1 + numbers->Below(4); blocks > 0; --blocks) {
    const Datatype& basic = *Datatype::Find(kBasics[numbers->Below(std::size(kBasics))]);
    displacements.push_back(end + numbers->Below(20));
    lengths.push_back(numbers->Below(6));
    types.emplace_back(&basic);
    end = displacements.back() + lengths.back() * basic.extent;
  }
  return MakeResized(*MakeStruct(lengths, displacements, types), 0, end + numbers->Below(9));
}

// A file of any bytes, that ends anywhere: memory has as much as it is said to, and gaps stay what they were.
void ReadExternal(Numbers numbers) {
  const Representation& external32 = *FindRepresentation("external32");
  const Ref<Datatype> type = ReadType(&numbers);
  const MPI_Count count = 1 + numbers.Below(5);
  MPI_Count file_bytes = 0, data = 0;
  if (!external32.FileBytes(count, *type, &file_bytes).ok()) return;
  Ref<View> view;
  if (View::Make(0, *Datatype::Find(MPI_BYTE), *type, external32, false, &view).ok() && !view->empty()) {
    WEFT_CHECK(view->PositionBefore(view->OffsetOf(file_bytes / 2)) <= file_bytes / 2);
  }
  Bytes given = numbers.rest();
  given = given.first(std::min(given.size(), static_cast<size_t>(file_bytes)));
  // Of its own size, so that AddressSanitizer sees each byte beside it.
  std::vector<uint8_t> file(given.begin(), given.end());
  const auto room = static_cast<size_t>(type->extent * count);
  const std::unique_ptr<uint8_t[]> memory(new uint8_t[room]), gaps(new uint8_t[room]);
  std::memset(memory.get(), 0xa5, room);
  std::memset(gaps.get(), 0, room);
  const Error error = external32.FromFile(file.data(), static_cast<MPI_Count>(file.size()), memory.get(), count, *type, &data);
  WEFT_CHECK(!error.ok() || (data >= 0 && data <= count * type->size));
  TypeCursor cursor(gaps.get(), count, *type);
  std::vector<uint8_t> ones(static_cast<size_t>(cursor.remaining()), 1);
  Unpack(cursor, ones);
  for (size_t i = 0; i < room; ++i) WEFT_CHECK(gaps[i] == 1 || memory[i] == 0xa5);
  std::vector<uint8_t> out(static_cast<size_t>(file_bytes));
  WEFT_CHECK(external32.ToFile(memory.get(), count, *type, out.data()).ok());
}

}  // namespace
}  // namespace weft::mpi::io

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::mpi::io;
  if (size == 0) return 0;
  const Bytes rest(data + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      ReadList(Numbers(rest));
      break;
    case 1:
      ReadInfo(rest);
      break;
    case 2:
      ReadHints(Numbers(rest));
      break;
    default:
      ReadExternal(Numbers(rest));
  }
  return 0;
}
