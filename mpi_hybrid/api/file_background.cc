#include "mpi_hybrid/api/bindings.h"
#include "mpi_hybrid/api/file_entry.h"
#include "mpi_hybrid/api/file_memory.h"
#include "mpi_hybrid/io/operations.h"
#include "mpi_hybrid/io/split.h"
#include "mpi_hybrid/p2p/request/request.h"

// Data access that goes on in the background, alone and together, and split collective calls (MPI 4.0 sections 14.4.2 to 14.4.5).
namespace weft::mpi {
namespace {

int Start(const char* name, MPI_File fh, io::Access::Direction direction, Place place, const FileMemory& memory, MPI_Request* request) {
  return OnFile(name, fh, [&](io::File& f) -> Error {
    io::Data data;
    WEFT_MPI_TRY(CheckNotNull(request, "request"));
    *request = MPI_REQUEST_NULL;
    WEFT_MPI_TRY(FindMemory(memory, &data));
    Request* started;
    WEFT_MPI_TRY(io::StartTransfer(f, direction, place, data, &started));
    *request = Request::Give(started);
    return {};
  });
}

int StartAll(const char* name, MPI_File fh, io::Access::Direction direction, Place place, const FileMemory& memory, MPI_Request* request) {
  return OnFile(name, fh, [&](io::File& f) -> Error {
    io::Data data;
    WEFT_MPI_TRY(CheckNotNull(request, "request"));
    *request = MPI_REQUEST_NULL;
    const Error refusal = FindMemory(memory, &data);
    Request* started;
    WEFT_MPI_TRY(io::StartTransferTogether(f, direction, place, data, refusal, &started));
    *request = Request::Give(started);
    return {};
  });
}

int BeginHalf(const char* name, MPI_File fh, io::Access::Direction direction, Place place, const FileMemory& memory) {
  return OnFile(name, fh, [&](io::File& f) {
    io::Data data;
    const Error refusal = FindMemory(memory, &data);
    return io::BeginSplit(f, direction, place, data, refusal);
  });
}

int EndHalf(const char* name, MPI_File fh, io::Access::Direction direction, Place::Kind kind, MPI_Status* status) {
  return OnFile(name, fh, [&](io::File& f) {
    MPI_Count moved = 0;
    Error error = io::EndSplit(f, direction, kind, &moved);
    SayMoved(moved, status);
    return error;
  });
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

WEFT_MPI_BOTH(File_iread_at, (MPI_File fh, MPI_Offset offset, void* buf, Count count, MPI_Datatype datatype, MPI_Request* request),
              Start(name, fh, kFileRead, Place::At(offset), {buf, count, datatype}, request))
WEFT_MPI_BOTH(File_iread, (MPI_File fh, void* buf, Count count, MPI_Datatype datatype, MPI_Request* request),
              Start(name, fh, kFileRead, Place::Pointer(), {buf, count, datatype}, request))
WEFT_MPI_BOTH(File_iread_shared, (MPI_File fh, void* buf, Count count, MPI_Datatype datatype, MPI_Request* request),
              Start(name, fh, kFileRead, Place::Shared(), {buf, count, datatype}, request))
WEFT_MPI_BOTH(File_iread_at_all, (MPI_File fh, MPI_Offset offset, void* buf, Count count, MPI_Datatype datatype, MPI_Request* request),
              StartAll(name, fh, kFileRead, Place::At(offset), {buf, count, datatype}, request))
WEFT_MPI_BOTH(File_iread_all, (MPI_File fh, void* buf, Count count, MPI_Datatype datatype, MPI_Request* request),
              StartAll(name, fh, kFileRead, Place::Pointer(), {buf, count, datatype}, request))

WEFT_MPI_BOTH(File_read_at_all_begin, (MPI_File fh, MPI_Offset offset, void* buf, Count count, MPI_Datatype datatype),
              BeginHalf(name, fh, kFileRead, Place::At(offset), {buf, count, datatype}))
WEFT_MPI_FUNCTION(File_read_at_all_end, (MPI_File fh, [[maybe_unused]] void* buf, MPI_Status* status),
                  EndHalf(name, fh, kFileRead, Place::Kind::kExplicit, status))

WEFT_MPI_BOTH(File_read_all_begin, (MPI_File fh, void* buf, Count count, MPI_Datatype datatype),
              BeginHalf(name, fh, kFileRead, Place::Pointer(), {buf, count, datatype}))
WEFT_MPI_FUNCTION(File_read_all_end, (MPI_File fh, [[maybe_unused]] void* buf, MPI_Status* status),
                  EndHalf(name, fh, kFileRead, Place::Kind::kIndividual, status))

WEFT_MPI_BOTH(File_read_ordered_begin, (MPI_File fh, void* buf, Count count, MPI_Datatype datatype),
              BeginHalf(name, fh, kFileRead, Place::Shared(), {buf, count, datatype}))
WEFT_MPI_FUNCTION(File_read_ordered_end, (MPI_File fh, [[maybe_unused]] void* buf, MPI_Status* status),
                  EndHalf(name, fh, kFileRead, Place::Kind::kShared, status))

WEFT_MPI_BOTH(File_iwrite_at, (MPI_File fh, MPI_Offset offset, const void* buf, Count count, MPI_Datatype datatype, MPI_Request* request),
              Start(name, fh, kFileWrite, Place::At(offset), {buf, count, datatype}, request))
WEFT_MPI_BOTH(File_iwrite, (MPI_File fh, const void* buf, Count count, MPI_Datatype datatype, MPI_Request* request),
              Start(name, fh, kFileWrite, Place::Pointer(), {buf, count, datatype}, request))
WEFT_MPI_BOTH(File_iwrite_shared, (MPI_File fh, const void* buf, Count count, MPI_Datatype datatype, MPI_Request* request),
              Start(name, fh, kFileWrite, Place::Shared(), {buf, count, datatype}, request))
WEFT_MPI_BOTH(File_iwrite_at_all, (MPI_File fh, MPI_Offset offset, const void* buf, Count count, MPI_Datatype datatype, MPI_Request* request),
              StartAll(name, fh, kFileWrite, Place::At(offset), {buf, count, datatype}, request))
WEFT_MPI_BOTH(File_iwrite_all, (MPI_File fh, const void* buf, Count count, MPI_Datatype datatype, MPI_Request* request),
              StartAll(name, fh, kFileWrite, Place::Pointer(), {buf, count, datatype}, request))

WEFT_MPI_BOTH(File_write_at_all_begin, (MPI_File fh, MPI_Offset offset, const void* buf, Count count, MPI_Datatype datatype),
              BeginHalf(name, fh, kFileWrite, Place::At(offset), {buf, count, datatype}))
WEFT_MPI_FUNCTION(File_write_at_all_end, (MPI_File fh, [[maybe_unused]] const void* buf, MPI_Status* status),
                  EndHalf(name, fh, kFileWrite, Place::Kind::kExplicit, status))

WEFT_MPI_BOTH(File_write_all_begin, (MPI_File fh, const void* buf, Count count, MPI_Datatype datatype),
              BeginHalf(name, fh, kFileWrite, Place::Pointer(), {buf, count, datatype}))
WEFT_MPI_FUNCTION(File_write_all_end, (MPI_File fh, [[maybe_unused]] const void* buf, MPI_Status* status),
                  EndHalf(name, fh, kFileWrite, Place::Kind::kIndividual, status))

WEFT_MPI_BOTH(File_write_ordered_begin, (MPI_File fh, const void* buf, Count count, MPI_Datatype datatype),
              BeginHalf(name, fh, kFileWrite, Place::Shared(), {buf, count, datatype}))
WEFT_MPI_FUNCTION(File_write_ordered_end, (MPI_File fh, [[maybe_unused]] const void* buf, MPI_Status* status),
                  EndHalf(name, fh, kFileWrite, Place::Kind::kShared, status))
