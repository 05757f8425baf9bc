#include "mpi_hybrid/datatype/external32.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "mpi_hybrid/datatype/floats.h"
#include "mpi_hybrid/datatype/predefined.h"
#include "mpi_hybrid/datatype/signature.h"

static_assert(std::endian::native == std::endian::little);

namespace weft::mpi {
namespace {

void Reverse(const uint8_t* from, uint8_t* to, size_t size, MPI_Count count) {
  const auto each = [&](auto word) {
    for (MPI_Count i = 0; i < count; ++i, from += sizeof word, to += sizeof word) {
      std::memcpy(&word, from, sizeof word);
      if constexpr (sizeof word == 2) word = __builtin_bswap16(word);
      if constexpr (sizeof word == 4) word = __builtin_bswap32(word);
      if constexpr (sizeof word == 8) word = __builtin_bswap64(word);
      if constexpr (sizeof word == 16) {
        const auto low = static_cast<uint64_t>(word), high = static_cast<uint64_t>(word >> 64);
        word = static_cast<unsigned __int128>(__builtin_bswap64(low)) << 64 | __builtin_bswap64(high);
      }
      std::memcpy(to, &word, sizeof word);
    }
  };
  switch (size) {
    case 1:
      if (to != from) std::memcpy(to, from, static_cast<size_t>(count));
      return;
    case 2: return each(uint16_t{});
    case 4: return each(uint32_t{});
    case 8: return each(uint64_t{});
    case 16: return each(static_cast<unsigned __int128>(0));
    default: WEFT_CHECK(false);
  }
}

// x87's format, or what long double is, to IEEE's 16-byte one and back. x87's six bytes of padding in memory become zero.
void LongDoubleToQuad(const uint8_t* native, uint8_t* external) {
  long double value;
  std::memcpy(&value, native, sizeof value);
  const Quad quad = value;
  Reverse(reinterpret_cast<const uint8_t*>(&quad), external, 16, 1);
}

void QuadToLongDouble(const uint8_t* external, uint8_t* native) {
  Quad quad;
  Reverse(external, reinterpret_cast<uint8_t*>(&quad), 16, 1);
  const long double value = static_cast<long double>(quad);
  std::memset(native, 0, sizeof value);
  std::memcpy(native, &value, kLongDoubleBytes);
}

bool IsX87(const Basic& basic) {
  switch (basic.handle) {
    case MPI_LONG_DOUBLE:
    case MPI_C_LONG_DOUBLE_COMPLEX:
    case MPI_CXX_LONG_DOUBLE_COMPLEX: return true;
  }
  return false;
}

bool IsAnyByteSet(const uint8_t* bytes, size_t size) {
  return std::any_of(bytes, bytes + size, [](uint8_t byte) { return byte != 0; });
}

void ToExternal(const Basic& basic, const uint8_t* native, uint8_t* external, MPI_Count count);
void FromExternal(const Basic& basic, const uint8_t* external, uint8_t* native, MPI_Count count);

// Elements that a plain reversal does not convert, one by one.
void ToExternalOne(const Basic& basic, const uint8_t* native, uint8_t* external) {
  switch (basic.kind) {
    case BasicKind::kLogical:
      std::memset(external, 0, basic.external);
      external[basic.external - 1] = IsAnyByteSet(native, basic.size);
      return;
    case BasicKind::kFloat: return LongDoubleToQuad(native, external);
    case BasicKind::kComplex:
      LongDoubleToQuad(native, external);
      return LongDoubleToQuad(native + 16, external + 16);
    case BasicKind::kPair: {
      const Basic &first = *FindBasic(basic.first), &second = *FindBasic(basic.second);
      ToExternal(first, native, external, 1);
      return ToExternal(second, native + first.size, external + first.external, 1);
    }
    default: return Reverse(native, external, basic.external, 1);  // a longer integer: its lower bytes
  }
}

void FromExternalOne(const Basic& basic, const uint8_t* external, uint8_t* native) {
  switch (basic.kind) {
    case BasicKind::kLogical:
      std::memset(native, 0, basic.size);
      native[0] = IsAnyByteSet(external, basic.external);
      return;
    case BasicKind::kFloat: return QuadToLongDouble(external, native);
    case BasicKind::kComplex:
      QuadToLongDouble(external, native);
      return QuadToLongDouble(external + 16, native + 16);
    case BasicKind::kPair: {
      const Basic &first = *FindBasic(basic.first), &second = *FindBasic(basic.second);
      FromExternal(first, external, native, 1);
      return FromExternal(second, external + first.external, native + first.size, 1);
    }
    default: {
      const bool negative = basic.kind == BasicKind::kSigned && (external[0] & 0x80) != 0;
      std::memset(native, negative ? 0xff : 0, basic.size);
      return Reverse(external, native, basic.external, 1);
    }
  }
}

// Bytes of the words to be reversed; 0: not so simple.
size_t WordSize(const Basic& basic) {
  switch (basic.kind) {
    case BasicKind::kByte: return 1;
    case BasicKind::kSigned:
    case BasicKind::kUnsigned: return basic.size == basic.external ? basic.size : 0;
    case BasicKind::kFloat: return IsX87(basic) ? 0 : basic.size;
    case BasicKind::kComplex: return IsX87(basic) ? 0 : basic.size / 2;
    default: return 0;
  }
}

void ToExternal(const Basic& basic, const uint8_t* native, uint8_t* external, MPI_Count count) {
  if (const size_t word = WordSize(basic); word > 0) {
    return Reverse(native, external, word, count * static_cast<MPI_Count>(basic.size / word));
  }
  for (; count > 0; --count, native += basic.size, external += basic.external) ToExternalOne(basic, native, external);
}

void FromExternal(const Basic& basic, const uint8_t* external, uint8_t* native, MPI_Count count) {
  if (const size_t word = WordSize(basic); word > 0) {
    return Reverse(external, native, word, count * static_cast<MPI_Count>(basic.size / word));
  }
  for (; count > 0; --count, native += basic.size, external += basic.external) FromExternalOne(basic, external, native);
}

// The native form of data in parts: where it lies if that is in one piece, else copied piece by piece.
class NativeData {
 public:
  NativeData(const void* buffer, MPI_Count count, const Datatype& type)
      : cursor_(buffer, count, type), next_(type.dense ? static_cast<const uint8_t*>(buffer) : nullptr) {}

  // How many elements of `left` a part may have.
  MPI_Count Part(MPI_Count left, const Basic& basic) const { return next_ != nullptr ? left : std::min<MPI_Count>(left, sizeof room_ / basic.size); }

  // The next `bytes` of it.
  const uint8_t* Get(MPI_Count bytes) {
    if (next_ == nullptr) {
      Pack(cursor_, {room_, static_cast<size_t>(bytes)});
      return room_;
    }
    return Pass(bytes);
  }

  // Calls fill(to), which stores the next `bytes` of it there.
  template <typename Fill>
  void Put(MPI_Count bytes, Fill fill) {
    if (next_ != nullptr) return fill(const_cast<uint8_t*>(Pass(bytes)));
    fill(room_);
    Unpack(cursor_, {room_, static_cast<size_t>(bytes)});
  }

 private:
  const uint8_t* Pass(MPI_Count bytes) { return std::exchange(next_, next_ + bytes); }

  TypeCursor cursor_;
  const uint8_t* next_;  // null: it is in pieces
  uint8_t room_[4096];
};

}  // namespace

MPI_Count ExternalSize(MPI_Count count, const Datatype& type) {
  MPI_Count bytes = 0;
  for (SignatureCursor at(type, 1); !at.done(); at.Advance(at.left())) bytes += at.left() * FindBasic(at.basic())->external;
  return count * bytes;
}

void PackExternal(const void* buffer, MPI_Count count, const Datatype& type, uint8_t* out) {
  NativeData native(buffer, count, type);
  for (SignatureCursor at(type, count); !at.done();) {
    const Basic& basic = *FindBasic(at.basic());
    const MPI_Count part = native.Part(at.left(), basic);
    ToExternal(basic, native.Get(part * basic.size), out, part);
    out += part * basic.external;
    at.Advance(part);
  }
}

void UnpackExternal(const uint8_t* in, void* buffer, MPI_Count count, const Datatype& type) {
  (void)UnpackExternalBytes({in, static_cast<size_t>(ExternalSize(count, type))}, buffer, count, type);
}

MPI_Count UnpackExternalBytes(std::span<const uint8_t> in, void* buffer, MPI_Count count, const Datatype& type) {
  NativeData native(buffer, count, type);
  MPI_Count stored = 0;
  for (SignatureCursor at(type, count); !at.done();) {
    const Basic& basic = *FindBasic(at.basic());
    const MPI_Count there = basic.external > 0 ? static_cast<MPI_Count>(in.size()) / basic.external : at.left();
    const MPI_Count part = native.Part(std::min(at.left(), there), basic);
    if (part == 0) break;
    native.Put(part * basic.size, [&](uint8_t* to) { FromExternal(basic, in.data(), to, part); });
    in = in.subspan(static_cast<size_t>(part * basic.external));
    stored += part * basic.size;
    at.Advance(part);
  }
  return stored;
}

namespace {

// As WordSize, of all elements; 0 also where they are of several kinds, or do not lie one behind the other.
size_t WordSizeOf(const Datatype& type) {
  const MPI_Datatype only = type.OnlyBasic();
  return type.dense && only != MPI_DATATYPE_NULL ? WordSize(*FindBasic(only)) : 0;
}

}  // namespace

bool FitsInPlace(const Datatype& type) { return WordSizeOf(type) != 0; }
bool IsSameInExternal(const Datatype& type) { return WordSizeOf(type) == 1; }

MPI_Count MemorySizeOfExternal(MPI_Count external, const Datatype& type) {
  const MPI_Count each = ExternalSize(1, type);
  if (each == 0) return external == 0 ? 0 : MPI_UNDEFINED;
  MPI_Count bytes = external / each * type.size, rest = external % each;
  for (SignatureCursor at(type, 1); rest > 0 && !at.done();) {
    const Basic& basic = *FindBasic(at.basic());
    const MPI_Count part = std::min<MPI_Count>(at.left(), rest / std::max<MPI_Count>(basic.external, 1));
    if (part == 0) return MPI_UNDEFINED;
    bytes += part * basic.size;
    rest -= part * basic.external;
    at.Advance(part);
  }
  return bytes;
}

}  // namespace weft::mpi
