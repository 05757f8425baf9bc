#ifndef MPI_HYBRID_CORE_REF_H_
#define MPI_HYBRID_CORE_REF_H_

#include <utility>

namespace weft::mpi {

// Base of objects that live as long as a handle or a pending operation needs them. (MPI_Type_free and similar calls
// only release the user's reference.) Not atomic: the library's lock (core/lock.h) guards every count.
template <typename Derived>
class RefCounted {
 public:
  void AddRef() const { ++references_; }
  void Release() const {
    if (--references_ == 0) delete static_cast<const Derived*>(this);
  }

 protected:
  RefCounted() = default;
  ~RefCounted() = default;

 private:
  mutable int references_ = 0;
};

template <typename T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T* object) : object_(object) {
    if (object_) object_->AddRef();
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_) object_->Release();
  }

  T* get() const { return object_; }
  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const Ref& other) const { return object_ == other.object_; }

 private:
  T* object_ = nullptr;
};

template <typename T, typename... Arguments>
Ref<T> MakeRef(Arguments&&... arguments) {
  return Ref<T>(new T(std::forward<Arguments>(arguments)...));
}

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_REF_H_
