#include "mpi_hybrid/core/attributes.h"

#include <string>
#include <utility>

#include "mpi_hybrid/core/error_handler.h"
#include "mpi_hybrid/core/lock.h"

namespace weft::mpi {
namespace {

HandleTable<Keyval>& Keyvals() {
  static auto* table = new HandleTable<Keyval>(HandleKind::kKeyval);
  return *table;
}

Error UserError(const char* which, const Keyval& keyval, int code) {
  // The program hears of the code that it made itself.
  int mpi_class = IsAddedCode(code) ? code : ErrorClassOf(code);
  if (mpi_class == MPI_SUCCESS || mpi_class == MPI_ERR_UNKNOWN) mpi_class = MPI_ERR_OTHER;
  return Error(mpi_class, "the attribute's " + std::string(which) + " function (keyval " + std::to_string(keyval.handle) +
                              ") returned error code " + std::to_string(code));
}

// Both are called without the lock: the program's functions may call MPI.
int CallCopy(const Keyval& keyval, int object, AttributeType type, void** stored, void** copy, int* flag) {
  const UnlockGuard unlocked;
  if (keyval.copy_proxy != nullptr) {
    return keyval.copy_proxy(keyval.copy, object, keyval.handle, keyval.extra_state, type, *stored, copy, flag);
  }
  void* value = type == AttributeType::kPointer ? *stored : static_cast<void*>(stored);
  return keyval.copy(object, keyval.handle, keyval.extra_state, value, copy, flag);
}

int CallDelete(const Keyval& keyval, int object, AttributeType type, void* value) {
  const UnlockGuard unlocked;
  if (keyval.delete_proxy != nullptr) {
    return keyval.delete_proxy(keyval.remove, object, keyval.handle, type, value, keyval.extra_state);
  }
  void* given = type == AttributeType::kPointer ? value : static_cast<void*>(&value);
  return keyval.remove(object, keyval.handle, given, keyval.extra_state);
}

Error CallRemove(const Keyval& keyval, int object, AttributeType type, void* value) {
  if (keyval.remove == nullptr) return {};
  const int code = CallDelete(keyval, object, type, value);
  return code == MPI_SUCCESS ? Error() : UserError("delete", keyval, code);
}

}  // namespace

Keyval* Keyval::Find(int handle) { return Keyvals().Find(handle); }

Keyval::~Keyval() {
  if (handle != MPI_KEYVAL_INVALID) Keyvals().Remove(handle);
}

Keyval& MakeKeyval(AttributeOwner owner, int (*copy)(int, int, void*, void*, void*, int*), int (*remove)(int, int, void*, void*),
                   void* extra_state) {
  auto* keyval = new Keyval;
  keyval->AddRef();
  keyval->handle = Keyvals().Add(keyval);
  keyval->owner = owner;
  keyval->copy = copy;
  keyval->remove = remove;
  keyval->extra_state = extra_state;
  return *keyval;
}

void FreeKeyval(Keyval& keyval) {
  if (std::exchange(keyval.freed, true)) return;
  keyval.Release();
}

Attributes::Entry* Attributes::FindEntry(const Keyval& keyval) const {
  for (const auto& entry : entries_) {
    if (entry->keyval.get() == &keyval) return entry.get();
  }
  return nullptr;
}

void Attributes::Erase(const Entry* entry) {
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    if (at->get() != entry) continue;
    entries_.erase(at);
    return;
  }
}

Error Attributes::Set(int object, Keyval& keyval, void* value, AttributeType type) {
  if (Entry* entry = FindEntry(keyval)) {
    const Ref<Keyval> held(&keyval);
    WEFT_MPI_TRY(CallRemove(keyval, object, entry->type, entry->value));
    // The delete function may have deleted the attribute itself.
    entry = FindEntry(keyval);
    if (entry != nullptr) {
      entry->value = value;
      entry->type = type;
      return {};
    }
  }
  entries_.emplace_back(new Entry{Ref<Keyval>(&keyval), value, type});
  return {};
}

bool Attributes::Get(const Keyval& keyval, void** value, AttributeType* type) const {
  const Entry* entry = FindEntry(keyval);
  if (entry == nullptr) return false;
  *value = entry->value;
  *type = entry->type;
  return true;
}

bool Attributes::GetAs(const Keyval& keyval, AttributeType as, void** value) const {
  Entry* entry = FindEntry(keyval);
  if (entry == nullptr) return false;
  const bool address = as == AttributeType::kPointer && entry->type != AttributeType::kPointer;
  *value = address ? static_cast<void*>(&entry->value) : entry->value;
  return true;
}

Error Attributes::Delete(int object, Keyval& keyval) {
  const Entry* entry = FindEntry(keyval);
  if (entry == nullptr)
    return Error(MPI_ERR_KEYVAL, "keyval " + std::to_string(keyval.handle) + " has no attribute on this object");
  const Ref<Keyval> held(&keyval);  // the delete function may take the last attribute of a freed one
  WEFT_MPI_TRY(CallRemove(keyval, object, entry->type, entry->value));
  Erase(FindEntry(keyval));
  return {};
}

Error Attributes::DeleteAll(int object) {
  while (!entries_.empty()) {
    // By value: the delete function may set or delete attributes.
    const Entry last = *entries_.back();
    const Entry* const which = entries_.back().get();
    WEFT_MPI_TRY(CallRemove(*last.keyval, object, last.type, last.value));
    Erase(which);
  }
  return {};
}

Error Attributes::CopyTo(int object, Attributes* to) const {
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Ref<Keyval> keyval = entries_[i]->keyval;
    AttributeType type = entries_[i]->type;
    if (keyval->copy == nullptr) continue;
    void* copy = nullptr;
    int flag = 0;
    // MPI_COMM_DUP_FN copies what is stored, whichever language stored it.
    if (keyval->copy_proxy == nullptr && keyval->copy == MPIR_Dup_fn) {
      copy = entries_[i]->value;
      flag = 1;
    } else {
      const int code = CallCopy(*keyval, object, type, &entries_[i]->value, &copy, &flag);
      if (code != MPI_SUCCESS) return UserError("copy", *keyval, code);
      if (keyval->copy_proxy == nullptr) type = AttributeType::kPointer;
    }
    if (flag) to->entries_.emplace_back(new Entry{keyval, copy, type});
  }
  return {};
}

}  // namespace weft::mpi

__attribute__((visibility("default"))) int MPIR_Dup_fn(MPI_Comm, int, void*, void* attribute_value_in, void* attribute_value_out,
                                                       int* flag) {
  *flag = 1;
  *static_cast<void**>(attribute_value_out) = attribute_value_in;
  return MPI_SUCCESS;
}
