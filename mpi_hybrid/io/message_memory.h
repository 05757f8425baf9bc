#ifndef MPI_HYBRID_IO_MESSAGE_MEMORY_H_
#define MPI_HYBRID_IO_MESSAGE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace weft::mpi::io {

// Memory for the data that ranks exchange. A window reuses the memory of the windows before it, so that the system
// allocates, clears and frees few pages. It is not cleared in between.
class MessageMemory {
 public:
  // A piece of memory of size() bytes; an empty one has no memory.
  class Piece {
   public:
    uint8_t* data() const { return memory_.get(); }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    std::span<uint8_t> bytes() const { return {data(), size_}; }

   private:
    friend class MessageMemory;
    std::unique_ptr<uint8_t[]> memory_;
    size_t size_ = 0, room_ = 0;
  };

  // False: there is not enough memory.
  bool Take(int64_t bytes, Piece* piece);
  void Give(Piece piece);

 private:
  std::vector<Piece> free_;
};

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_MESSAGE_MEMORY_H_
