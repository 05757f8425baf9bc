#include <cstring>
#include <limits>
#include <string>

#include "mpi_hybrid/api/bindings.h"
#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/type_arguments.h"
#include "mpi_hybrid/datatype/external32.h"

// MPI_Pack and its kin (MPI 4.0 sections 5.2 and 5.3). Packed data is the bytes of the elements, without a header. N is the
// integer of counts, P that of sizes and positions in the packed buffer.
namespace weft::mpi {
namespace {

// Room for, or data of, `needed` bytes at `position` of a buffer of `size`.
Error CheckRange(MPI_Count position, MPI_Count needed, MPI_Count size, const char* size_name) {
  if (position < 0) return Error(MPI_ERR_ARG, "position is negative (" + std::to_string(position) + ")");
  if (size < 0) return Error(MPI_ERR_ARG, std::string(size_name) + " is negative (" + std::to_string(size) + ")");
  if (position <= size && needed <= size - position) [[likely]] return {};
  return Error(MPI_ERR_TRUNCATE, std::to_string(needed) + " bytes at position " + std::to_string(position) + " are more than " +
                                     size_name + " = " + std::to_string(size) + " holds");
}

template <typename P>
struct Packed {
  uint8_t* buffer;
  P size;
  P* position;

  uint8_t* here() const { return buffer + *position; }
};

template <typename P>
Error CheckPacked(const Packed<P>& packed, MPI_Count needed, const char* buffer_name, const char* size_name) {
  WEFT_MPI_TRY(CheckNotNull(packed.position, "position"));
  WEFT_MPI_TRY(CheckRange(*packed.position, needed, packed.size, size_name));
  return needed > 0 ? CheckNotNull(packed.buffer, buffer_name) : Error();
}

Error TooMany(MPI_Count count) {
  return Error(MPI_ERR_COUNT, std::to_string(count) + " elements are more bytes than an MPI_Count can hold");
}

// What is packed for a communicator that spans clients of an IMPI job is in external32, because other implementations read it (IMPI 0.0, section 4.1).
bool IsNative(const Comm& comm) { return comm.clients == nullptr; }

// Bytes of `count` elements, and what is wrong with the arguments.
Error CheckElements(const void* buffer, MPI_Count count, MPI_Datatype handle, const Datatype** type, MPI_Count* bytes) {
  WEFT_MPI_TRY(CheckCount(count));
  WEFT_MPI_TRY(FindCommitted(handle, type));
  WEFT_MPI_TRY(CheckBuffer(buffer, count, **type));
  return __builtin_mul_overflow(count, (*type)->size, bytes) ? TooMany(count) : Error();
}

template <typename P>
Error PackNative(const void* buffer, MPI_Count count, MPI_Datatype handle, const Packed<P>& out) {
  const Datatype* type;
  MPI_Count bytes;
  WEFT_MPI_TRY(CheckElements(buffer, count, handle, &type, &bytes));
  WEFT_MPI_TRY(CheckPacked(out, bytes, "outbuf", "outsize"));
  if (bytes == 0) return {};
  TypeCursor cursor(buffer, count, *type);
  Pack(cursor, {out.here(), static_cast<size_t>(bytes)});
  *out.position += static_cast<P>(bytes);
  return {};
}

template <typename P>
Error UnpackNative(const Packed<P>& in, void* buffer, MPI_Count count, MPI_Datatype handle) {
  const Datatype* type;
  MPI_Count bytes;
  WEFT_MPI_TRY(CheckElements(buffer, count, handle, &type, &bytes));
  WEFT_MPI_TRY(CheckPacked(in, bytes, "inbuf", "insize"));
  if (bytes == 0) return {};
  TypeCursor cursor(buffer, count, *type);
  Unpack(cursor, {in.here(), static_cast<size_t>(bytes)});
  *in.position += static_cast<P>(bytes);
  return {};
}

template <typename N>
Error PackedSize(N count, MPI_Datatype handle, const Comm& comm, N* size) {
  const Datatype* type;
  MPI_Count bytes;
  WEFT_MPI_TRY(CheckCount(count));
  WEFT_MPI_TRY(FindType(handle, &type));
  WEFT_MPI_TRY(CheckNotNull(size, "size"));
  if (__builtin_mul_overflow(static_cast<MPI_Count>(count), type->size, &bytes)) {
    bytes = MPI_UNDEFINED;
  } else if (!IsNative(comm)) {
    bytes = ExternalSize(count, *type);
  }
  Express(bytes, size);
  return {};
}

// "external32" is the standard's only one; "native" and "internal" mean the packing of MPI_Pack, as in MPICH.
Error CheckExternal(const char* name, bool* external) {
  WEFT_MPI_TRY(CheckNotNull(name, "datarep"));
  *external = std::strcmp(name, "external32") == 0;
  if (*external || std::strcmp(name, "native") == 0 || std::strcmp(name, "internal") == 0) return {};
  return Error(MPI_ERR_ARG,
               "datarep is \"" + std::string(name, strnlen(name, MPI_MAX_DATAREP_STRING)) + "\", not \"external32\"");
}

template <typename P>
Error PackIn(const char* representation, const void* buffer, MPI_Count count, MPI_Datatype handle, const Packed<P>& out) {
  const Datatype* type;
  MPI_Count native;
  bool external;
  WEFT_MPI_TRY(CheckExternal(representation, &external));
  if (!external) return PackNative(buffer, count, handle, out);
  WEFT_MPI_TRY(CheckElements(buffer, count, handle, &type, &native));
  const MPI_Count bytes = ExternalSize(count, *type);
  WEFT_MPI_TRY(CheckPacked(out, bytes, "outbuf", "outsize"));
  if (bytes == 0) return {};
  PackExternal(buffer, count, *type, out.here());
  *out.position += static_cast<P>(bytes);
  return {};
}

template <typename P>
Error UnpackIn(const char* representation, const Packed<P>& in, void* buffer, MPI_Count count, MPI_Datatype handle) {
  const Datatype* type;
  MPI_Count native;
  bool external;
  WEFT_MPI_TRY(CheckExternal(representation, &external));
  if (!external) return UnpackNative(in, buffer, count, handle);
  WEFT_MPI_TRY(CheckElements(buffer, count, handle, &type, &native));
  const MPI_Count bytes = ExternalSize(count, *type);
  WEFT_MPI_TRY(CheckPacked(in, bytes, "inbuf", "insize"));
  if (bytes == 0) return {};
  UnpackExternal(in.here(), buffer, count, *type);
  *in.position += static_cast<P>(bytes);
  return {};
}

Error SizeIn(const char* representation, MPI_Count count, MPI_Datatype handle, MPI_Count* size) {
  const Datatype* type;
  bool external;
  WEFT_MPI_TRY(CheckExternal(representation, &external));
  WEFT_MPI_TRY(CheckCount(count));
  WEFT_MPI_TRY(FindType(handle, &type));
  WEFT_MPI_TRY(CheckNotNull(size, "size"));
  MPI_Count native;  // never less than in external32
  if (__builtin_mul_overflow(count, type->size, &native)) return TooMany(count);
  *size = external ? ExternalSize(count, *type) : native;
  return {};
}

template <typename P>
Packed<P> In(const void* buffer, P size, P* position) {  // the buffer of an Unpack is only read
  return {static_cast<uint8_t*>(const_cast<void*>(buffer)), size, position};
}
template <typename P>
Packed<P> Out(void* buffer, P size, P* position) {
  return {static_cast<uint8_t*>(buffer), size, position};
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

WEFT_MPI_BOTH(Pack,
              (const void* inbuf, Count incount, MPI_Datatype datatype, void* outbuf, Count outsize, Count* position,
               MPI_Comm comm),
              OnComm(name, comm,
                     [&](Comm& c) {
                       const auto out = Out(outbuf, outsize, position);
                       return IsNative(c) ? PackNative(inbuf, incount, datatype, out) : PackIn("external32", inbuf, incount, datatype, out);
                     }))

WEFT_MPI_BOTH(Unpack,
              (const void* inbuf, Count insize, Count* position, void* outbuf, Count outcount, MPI_Datatype datatype,
               MPI_Comm comm),
              OnComm(name, comm,
                     [&](Comm& c) {
                       const auto in = In(inbuf, insize, position);
                       return IsNative(c) ? UnpackNative(in, outbuf, outcount, datatype) : UnpackIn("external32", in, outbuf, outcount, datatype);
                     }))

WEFT_MPI_BOTH(Pack_size, (Count incount, MPI_Datatype datatype, MPI_Comm comm, Count* size),
              OnComm(name, comm, [&](Comm& c) { return PackedSize(incount, datatype, c, size); }))

WEFT_MPI_BOTH(Pack_external,
              (const char* datarep, const void* inbuf, Count incount, MPI_Datatype datatype, void* outbuf,
               MPI_Count outsize, MPI_Count* position),
              Anywhere(name, [&] { return PackIn(datarep, inbuf, incount, datatype, Out(outbuf, outsize, position)); }))

WEFT_MPI_BOTH(Unpack_external,
              (const char datarep[], const void* inbuf, MPI_Count insize, MPI_Count* position, void* outbuf,
               Count outcount, MPI_Datatype datatype),
              Anywhere(name,
                       [&] { return UnpackIn(datarep, In(inbuf, insize, position), outbuf, outcount, datatype); }))

WEFT_MPI_BOTH(Pack_external_size, (const char* datarep, Count incount, MPI_Datatype datatype, MPI_Count* size),
              Anywhere(name, [&] { return SizeIn(datarep, incount, datatype, size); }))
