#include <iterator>

#include "mpi_hybrid/core/error_handler.h"

namespace weft::mpi {
namespace {

struct ClassText {
  int mpi_class;
  const char* text;
};

#define CLASS(name, sentence) {name, #name ": " sentence}
constexpr ClassText kClasses[] = {
    {MPI_SUCCESS, "MPI_SUCCESS: no error"},
    CLASS(MPI_ERR_BUFFER, "the buffer is not usable"),
    CLASS(MPI_ERR_COUNT, "the count is not allowed"),
    CLASS(MPI_ERR_TYPE, "the datatype is not usable"),
    CLASS(MPI_ERR_TAG, "the tag is out of range"),
    CLASS(MPI_ERR_COMM, "the communicator is not usable"),
    CLASS(MPI_ERR_RANK, "there is no such rank"),
    CLASS(MPI_ERR_ROOT, "the root is not allowed"),
    CLASS(MPI_ERR_GROUP, "the group is not usable"),
    CLASS(MPI_ERR_OP, "the reduction operation is not usable"),
    CLASS(MPI_ERR_TOPOLOGY, "the communicator has no such topology"),
    CLASS(MPI_ERR_DIMS, "the dimensions are not allowed"),
    CLASS(MPI_ERR_ARG, "an argument is not allowed"),
    CLASS(MPI_ERR_UNKNOWN, "an error of unknown kind"),
    CLASS(MPI_ERR_TRUNCATE, "the message is longer than the receive buffer"),
    CLASS(MPI_ERR_OTHER, "the operation failed"),
    CLASS(MPI_ERR_INTERN, "an error inside the MPI library"),
    CLASS(MPI_ERR_IN_STATUS, "see the error codes of the statuses"),
    CLASS(MPI_ERR_PENDING, "the request is neither complete nor failed"),
    CLASS(MPI_ERR_REQUEST, "the request is not usable"),
    CLASS(MPI_ERR_ACCESS, "no permission to access the file"),
    CLASS(MPI_ERR_AMODE, "the access mode is not allowed"),
    CLASS(MPI_ERR_BAD_FILE, "the file name is not allowed"),
    CLASS(MPI_ERR_CONVERSION, "a data conversion function failed"),
    CLASS(MPI_ERR_DUP_DATAREP, "the data representation is defined already"),
    CLASS(MPI_ERR_FILE_EXISTS, "the file exists"),
    CLASS(MPI_ERR_FILE_IN_USE, "the file is open elsewhere"),
    CLASS(MPI_ERR_FILE, "the file handle is not usable"),
    CLASS(MPI_ERR_INFO, "the info object is not usable"),
    CLASS(MPI_ERR_INFO_KEY, "the info key is too long or empty"),
    CLASS(MPI_ERR_INFO_VALUE, "the info value is too long"),
    CLASS(MPI_ERR_INFO_NOKEY, "the info object has no such key"),
    CLASS(MPI_ERR_IO, "input or output failed"),
    CLASS(MPI_ERR_NAME, "the service name is not published"),
    CLASS(MPI_ERR_NO_MEM, "there is no memory left"),
    CLASS(MPI_ERR_NOT_SAME, "the ranks gave different arguments"),
    CLASS(MPI_ERR_NO_SPACE, "there is no space left on the device"),
    CLASS(MPI_ERR_NO_SUCH_FILE, "there is no such file"),
    CLASS(MPI_ERR_PORT, "the port name is not usable"),
    CLASS(MPI_ERR_QUOTA, "the quota is used up"),
    CLASS(MPI_ERR_READ_ONLY, "the file or file system is read-only"),
    CLASS(MPI_ERR_SERVICE, "the service name cannot be withdrawn"),
    CLASS(MPI_ERR_SPAWN, "the processes could not be started"),
    CLASS(MPI_ERR_UNSUPPORTED_DATAREP, "the data representation is not supported"),
    CLASS(MPI_ERR_UNSUPPORTED_OPERATION, "the operation is not supported"),
    CLASS(MPI_ERR_WIN, "the window is not usable"),
    CLASS(MPI_ERR_BASE, "the base address is not usable"),
    CLASS(MPI_ERR_LOCKTYPE, "the lock type is neither MPI_LOCK_SHARED nor MPI_LOCK_EXCLUSIVE"),
    CLASS(MPI_ERR_KEYVAL, "the attribute key is not usable"),
    CLASS(MPI_ERR_RMA_CONFLICT, "conflicting accesses to the window"),
    CLASS(MPI_ERR_RMA_SYNC, "the call does not fit the window's epochs"),
    CLASS(MPI_ERR_SIZE, "the size is not allowed"),
    CLASS(MPI_ERR_DISP, "the displacement is not allowed"),
    CLASS(MPI_ERR_ASSERT, "the assertion is not allowed"),
    CLASS(MPI_ERR_RMA_RANGE, "the target memory is not within the window"),
    CLASS(MPI_ERR_RMA_ATTACH, "the memory cannot be attached"),
    CLASS(MPI_ERR_RMA_SHARED, "the memory cannot be shared"),
    CLASS(MPI_ERR_RMA_FLAVOR, "the window is of the wrong flavor"),
    CLASS(MPI_T_ERR_MEMORY, "there is no memory left"),
    CLASS(MPI_T_ERR_NOT_INITIALIZED, "MPI_T_init_thread was not called"),
    CLASS(MPI_T_ERR_CANNOT_INIT, "the tool interface cannot be initialized now"),
    CLASS(MPI_T_ERR_INVALID_INDEX, "there is no such index"),
    CLASS(MPI_T_ERR_INVALID_ITEM, "there is no such item"),
    CLASS(MPI_T_ERR_INVALID_HANDLE, "the handle is not usable"),
    CLASS(MPI_T_ERR_OUT_OF_HANDLES, "there are no handles left"),
    CLASS(MPI_T_ERR_OUT_OF_SESSIONS, "there are no sessions left"),
    CLASS(MPI_T_ERR_INVALID_SESSION, "the session is not usable"),
    CLASS(MPI_T_ERR_CVAR_SET_NOT_NOW, "the control variable cannot be set now"),
    CLASS(MPI_T_ERR_CVAR_SET_NEVER, "the control variable can never be set"),
    CLASS(MPI_T_ERR_PVAR_NO_STARTSTOP, "the performance variable cannot be started or stopped"),
    CLASS(MPI_T_ERR_PVAR_NO_WRITE, "the performance variable cannot be written"),
    CLASS(MPI_T_ERR_PVAR_NO_ATOMIC, "the performance variable cannot be read and reset in one"),
    CLASS(MPI_T_ERR_INVALID_NAME, "there is no variable, category or event of this name"),
    CLASS(MPI_T_ERR_INVALID, "an argument is not allowed"),
    CLASS(MPI_ERR_SESSION, "the session is not usable"),
    CLASS(MPI_ERR_PROC_ABORTED, "a process that takes part has ended"),
    CLASS(MPI_ERR_VALUE_TOO_LARGE, "the value does not fit the argument"),
    CLASS(MPI_T_ERR_NOT_SUPPORTED, "the tool interface does not support this"),
    CLASS(MPIX_ERR_PROC_FAILED, "a process that takes part has failed"),
    CLASS(MPIX_ERR_PROC_FAILED_PENDING, "a process that could have sent has failed"),
    CLASS(MPIX_ERR_REVOKED, "the communicator was revoked"),
    CLASS(MPIX_ERR_EAGAIN, "try again"),
    CLASS(MPIX_ERR_NOREQ, "there is no request left"),
};
#undef CLASS

}  // namespace

bool IsErrorClass(int mpi_class) {
  for (const ClassText& known : kClasses) {
    if (known.mpi_class == mpi_class) return true;
  }
  return false;
}

const char* ErrorClassString(int mpi_class) {
  for (const ClassText& known : kClasses) {
    if (known.mpi_class == mpi_class) return known.text;
  }
  return "MPI_ERR_UNKNOWN: not an error class";
}

}  // namespace weft::mpi
