#ifndef MPI_HYBRID_P2P_ENGINE_POOL_H_
#define MPI_HYBRID_P2P_ENGINE_POOL_H_

#include <cstddef>
#include <vector>

namespace weft::mpi {

// Objects that are used by every message. Guarded by the library's lock. Objects in the pool are never destroyed.
template <typename T>
class Pool {
 public:
  static T* Take() {
    std::vector<T*>& free = Free();
    if (free.empty()) return new T;
    T* object = free.back();
    free.pop_back();
    return object;
  }
  // `object` must be as after construction.
  static void Give(T* object) {
    if (Free().size() < kMostKept) {
      Free().push_back(object);
    } else {
      delete object;
    }
  }

 private:
  static constexpr size_t kMostKept = 1024;
  static std::vector<T*>& Free() {
    static std::vector<T*>* free = new std::vector<T*>;  // outlives the program's exit handlers
    return *free;
  }
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_ENGINE_POOL_H_
