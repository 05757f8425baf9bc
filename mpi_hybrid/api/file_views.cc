#include <cstring>
#include <string>

#include "mpi_hybrid/api/bindings.h"
#include "mpi_hybrid/api/comm_arguments.h"
#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/file_entry.h"
#include "mpi_hybrid/io/file.h"
#include "mpi_hybrid/io/representation.h"

// Views, file pointers and data representations (MPI 4.0 sections 14.3 to 14.5).
namespace weft::mpi {
namespace {

Error CheckRepresentation(const char* datarep) {
  WEFT_MPI_TRY(CheckNotNull(datarep, "datarep"));
  const size_t length = strnlen(datarep, MPI_MAX_DATAREP_STRING + 1);
  if (length > 0 && length <= MPI_MAX_DATAREP_STRING) return {};
  return Error(MPI_ERR_ARG, length == 0 ? std::string("datarep is empty")
                                        : "datarep is longer than MPI_MAX_DATAREP_STRING, " + std::to_string(MPI_MAX_DATAREP_STRING));
}

int SetViewOf(const char* name, MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep, MPI_Info info) {
  return OnFile(name, fh, [&](io::File& f) {
    const Datatype *elementary = nullptr, *whole = nullptr;
    Info* hints = nullptr;
    const Error refusal = [&]() -> Error {
      WEFT_MPI_TRY(FindCommitted(etype, &elementary));
      WEFT_MPI_TRY(FindCommitted(filetype, &whole));
      WEFT_MPI_TRY(CheckRepresentation(datarep));
      return FindInfo(info, &hints);
    }();
    return io::SetView(f, disp, elementary, whole, refusal.ok() ? datarep : "", hints, refusal);
  });
}

// The program may have freed its own handle of the type, and frees this one.
MPI_Datatype GiveType(const Datatype& type) { return type.builtin ? type.handle : Datatype::Give(const_cast<Datatype&>(type)); }

Error CheckPointers(const io::File& file) {
  if (!file.sequential()) return {};
  return Error(MPI_ERR_UNSUPPORTED_OPERATION, file.name + " was opened with MPI_MODE_SEQUENTIAL, in which there is nothing to seek");
}

Error ByteOffset(const io::File& file, MPI_Offset offset, MPI_Offset* disp) {
  WEFT_MPI_TRY(CheckPointers(file));
  WEFT_MPI_TRY(CheckNotNull(disp, "disp"));
  if (offset < 0) return Error(MPI_ERR_ARG, "offset " + std::to_string(offset) + " is negative");
  const io::View& view = *file.view;
  if (view.empty()) {
    *disp = view.displacement();
    return {};
  }
  if (offset >= view.capacity() / view.etype_bytes()) {
    return Error(MPI_ERR_ARG, "offset " + std::to_string(offset) + " is beyond the end of the largest file");
  }
  *disp = view.OffsetOf(offset * view.etype_bytes());
  return {};
}

Error Register(const char* datarep, bool extent_given, const io::DatarepFunctions& functions) {
  WEFT_MPI_TRY(CheckRepresentation(datarep));
  if (!extent_given) return Error(MPI_ERR_ARG, "dtype_file_extent_fn is a null pointer");
  return io::RegisterRepresentation(datarep, functions);
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

WEFT_MPI_FUNCTION(File_set_view,
                  (MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep, MPI_Info info),
                  SetViewOf(name, fh, disp, etype, filetype, datarep, info))

int PMPI_File_get_view(MPI_File fh, MPI_Offset* disp, MPI_Datatype* etype, MPI_Datatype* filetype, char* datarep) {
  return OnFile("MPI_File_get_view", fh, [&](io::File& f) -> Error {
    WEFT_MPI_TRY(CheckNotNull(disp, "disp"));
    WEFT_MPI_TRY(CheckNotNull(etype, "etype"));
    WEFT_MPI_TRY(CheckNotNull(filetype, "filetype"));
    WEFT_MPI_TRY(CheckNotNull(datarep, "datarep"));
    *disp = f.view->displacement();
    *etype = GiveType(f.view->etype());
    *filetype = GiveType(f.view->filetype());
    std::strcpy(datarep, f.view->representation().name.c_str());
    return {};
  });
}
WEFT_MPI_ALIAS(File_get_view)

template <typename Extent>
static int TypeExtent(const char* name, MPI_File fh, MPI_Datatype datatype, Extent* extent) {
  return OnFile(name, fh, [&](io::File& f) -> Error {
    const Datatype* type;
    WEFT_MPI_TRY(FindType(datatype, &type));
    WEFT_MPI_TRY(CheckNotNull(extent, "extent"));
    Ref<const Datatype> in_file;
    WEFT_MPI_TRY(f.view->representation().FileType(*type, &in_file));
    *extent = in_file->extent;
    return {};
  });
}

WEFT_MPI_FUNCTION(File_get_type_extent, (MPI_File fh, MPI_Datatype datatype, MPI_Aint* extent), TypeExtent(name, fh, datatype, extent))

WEFT_MPI_FUNCTION(File_get_type_extent_c, (MPI_File fh, MPI_Datatype datatype, MPI_Count* extent), TypeExtent(name, fh, datatype, extent))

WEFT_MPI_FUNCTION(File_get_byte_offset, (MPI_File fh, MPI_Offset offset, MPI_Offset* disp),
                  OnFile(name, fh, [&](io::File& f) { return ByteOffset(f, offset, disp); }))

int PMPI_File_seek(MPI_File fh, MPI_Offset offset, int whence) {
  return OnFile("MPI_File_seek", fh, [&](io::File& f) -> Error {
    WEFT_MPI_TRY(CheckPointers(f));
    int64_t target = 0;
    WEFT_MPI_TRY(io::SeekTarget(f, offset, whence, f.pointer, &target));
    f.pointer = target;
    return {};
  });
}
WEFT_MPI_ALIAS(File_seek)

int PMPI_File_get_position(MPI_File fh, MPI_Offset* offset) {
  return OnFile("MPI_File_get_position", fh, [&](io::File& f) -> Error {
    WEFT_MPI_TRY(CheckPointers(f));
    WEFT_MPI_TRY(CheckNotNull(offset, "offset"));
    *offset = f.pointer;
    return {};
  });
}
WEFT_MPI_ALIAS(File_get_position)

int PMPI_File_seek_shared(MPI_File fh, MPI_Offset offset, int whence) {
  return OnFile("MPI_File_seek_shared", fh, [&](io::File& f) { return io::SeekShared(f, offset, whence, CheckPointers(f)); });
}
WEFT_MPI_ALIAS(File_seek_shared)

int PMPI_File_get_position_shared(MPI_File fh, MPI_Offset* offset) {
  return OnFile("MPI_File_get_position_shared", fh, [&](io::File& f) -> Error {
    WEFT_MPI_TRY(CheckPointers(f));
    WEFT_MPI_TRY(CheckNotNull(offset, "offset"));
    int64_t now = 0;
    WEFT_MPI_TRY(f.shared.Get(&now));
    *offset = now;
    return {};
  });
}
WEFT_MPI_ALIAS(File_get_position_shared)

int PMPI_Register_datarep(const char* datarep, MPI_Datarep_conversion_function* read_conversion_fn,
                          MPI_Datarep_conversion_function* write_conversion_fn, MPI_Datarep_extent_function* dtype_file_extent_fn,
                          void* extra_state) {
  return WithoutFile("MPI_Register_datarep", [&] {
    io::DatarepFunctions functions;
    functions.read = read_conversion_fn;
    functions.write = write_conversion_fn;
    functions.extent = dtype_file_extent_fn;
    functions.extra_state = extra_state;
    return Register(datarep, dtype_file_extent_fn != nullptr, functions);
  });
}
WEFT_MPI_ALIAS(Register_datarep)

int PMPI_Register_datarep_c(const char* datarep, MPI_Datarep_conversion_function_c* read_conversion_fn,
                            MPI_Datarep_conversion_function_c* write_conversion_fn, MPI_Datarep_extent_function* dtype_file_extent_fn,
                            void* extra_state) {
  return WithoutFile("MPI_Register_datarep_c", [&] {
    io::DatarepFunctions functions;
    functions.read_c = read_conversion_fn;
    functions.write_c = write_conversion_fn;
    functions.extent = dtype_file_extent_fn;
    functions.extra_state = extra_state;
    return Register(datarep, dtype_file_extent_fn != nullptr, functions);
  });
}
WEFT_MPI_ALIAS(Register_datarep_c)
