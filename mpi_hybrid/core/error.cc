#include "mpi_hybrid/core/error.h"

#include <array>
#include <vector>

#include "mpi_hybrid/core/error_handler.h"

namespace weft::mpi {
namespace {

// --- codes that carry a message:  | 0 : 2 | number of the message : 23 | class : 7 | ---

constexpr int kClassBits = 7;
constexpr int kClassMask = (1 << kClassBits) - 1;
constexpr uint32_t kNumbers = 1u << 23;
constexpr size_t kRing = 4096;

struct Message {
  uint32_t number = 0;  // 1 to kNumbers - 1; 0: no message
  std::string text;
};

struct MessageRing {
  std::array<Message, kRing> messages;
  uint32_t last_number = 0;
};

MessageRing& Ring() {
  static auto* ring = new MessageRing;
  return *ring;
}

// --- codes that the program added: kAdded + position in Added(), from 1, classes and codes alike ---

constexpr int kAdded = 0x40000000;

struct AddedCode {
  int mpi_class = 0;  // of a class: itself
  std::string text;
  bool deleted = false;
};

std::vector<AddedCode>& Added() {
  static auto* added = new std::vector<AddedCode>(1);
  return *added;
}

AddedCode* FindAdded(int code) {
  if ((code & kAdded) == 0 || code < 0) return nullptr;
  const size_t position = static_cast<size_t>(code - kAdded);
  if (position == 0 || position >= Added().size() || Added()[position].deleted) return nullptr;
  return &Added()[position];
}

Error NotAdded(int code, const char* what) {
  return Error(MPI_ERR_ARG,
               std::to_string(code) + " is not " + what + " that MPI_Add_error_" + (what[3] == 'l' ? "class" : "code") + " returned");
}

}  // namespace

int MakeErrorCode(const Error& error) {
  if (error.ok()) return MPI_SUCCESS;
  if (error.mpi_class() > kClassMask) return error.mpi_class();
  MessageRing& ring = Ring();
  ring.last_number = ring.last_number + 1 < kNumbers ? ring.last_number + 1 : 1;
  ring.messages[ring.last_number % kRing] = {ring.last_number, error.message()};
  return static_cast<int>(ring.last_number << kClassBits) | error.mpi_class();
}

int ErrorClassOf(int code) {
  if (const AddedCode* added = FindAdded(code)) return added->mpi_class;
  if (code < 0 || (code & kAdded) != 0) return MPI_ERR_UNKNOWN;
  return IsErrorClass(code & kClassMask) ? code & kClassMask : MPI_ERR_UNKNOWN;
}

bool IsErrorCode(int code) {
  if (code < 0) return false;
  if ((code & kAdded) != 0) return FindAdded(code) != nullptr;
  return IsErrorClass(code & kClassMask);
}

bool IsAddedCode(int code) { return FindAdded(code) != nullptr; }

std::string ErrorString(int code) {
  if (const AddedCode* added = FindAdded(code)) return added->text;
  const std::string of_class = ErrorClassString(ErrorClassOf(code));
  if (code < 0 || (code & kAdded) != 0) return of_class;
  const uint32_t number = static_cast<uint32_t>(code) >> kClassBits;
  const Message& message = Ring().messages[number % kRing];
  if (number == 0 || message.number != number) return of_class;
  return of_class + "; " + message.text;
}

Error AddErrorClass(int* error_class) {
  Added().push_back({});
  *error_class = LastUsedCode();
  Added().back().mpi_class = *error_class;
  return {};
}

Error AddErrorCode(int error_class, int* code) {
  const AddedCode* added = FindAdded(error_class);
  if (!(added != nullptr ? added->mpi_class == error_class : IsErrorClass(error_class))) {
    return Error(MPI_ERR_ARG, "errorclass " + std::to_string(error_class) + " is not an error class");
  }
  Added().push_back({error_class, "", false});
  *code = LastUsedCode();
  return {};
}

Error AddErrorString(int code, const std::string& text) {
  AddedCode* added = FindAdded(code);
  if (added == nullptr) return NotAdded(code, "a code");
  added->text = text;
  return {};
}

namespace {
// Numbers at the end become free again, so that MPI_LASTUSEDCODE falls.
void DeleteAdded(AddedCode* added) {
  *added = {0, "", true};
  while (Added().size() > 1 && Added().back().deleted) Added().pop_back();
}
}  // namespace

Error DeleteErrorClass(int error_class) {
  AddedCode* added = FindAdded(error_class);
  if (added == nullptr || added->mpi_class != error_class) return NotAdded(error_class, "a class");
  for (const AddedCode& other : Added()) {
    if (&other != added && !other.deleted && other.mpi_class == error_class) {
      return Error(MPI_ERR_OTHER, "error class " + std::to_string(error_class) + " still has error codes");
    }
  }
  DeleteAdded(added);
  return {};
}

Error DeleteErrorCode(int code) {
  AddedCode* added = FindAdded(code);
  if (added == nullptr || added->mpi_class == code) return NotAdded(code, "a code");
  DeleteAdded(added);
  return {};
}

Error DeleteErrorString(int code) { return AddErrorString(code, ""); }

int LastUsedCode() { return Added().size() > 1 ? kAdded + static_cast<int>(Added().size()) - 1 : MPI_ERR_LASTCODE; }

}  // namespace weft::mpi
