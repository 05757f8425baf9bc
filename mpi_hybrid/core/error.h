#ifndef MPI_HYBRID_CORE_ERROR_H_
#define MPI_HYBRID_CORE_ERROR_H_

#include <memory>
#include <string>

namespace weft::mpi {

// The outcome of an operation: success, or an MPI error class with a message that names the argument and its value. The
// size of one pointer; null means success. Only api/ turns an Error into an error code and calls the error handler.
class [[nodiscard]] Error {
 public:
  Error() = default;  // success
  // `mpi_class`: an MPI_ERR_... of mpi.h other than MPI_SUCCESS, or a class or code that the program added
  // (IsAddedCode). `message`: a sentence without a full stop.
  Error(int mpi_class, std::string message) : detail_(new Detail{mpi_class, std::move(message)}) {}
  Error(const Error& other) : detail_(other.detail_ ? new Detail(*other.detail_) : nullptr) {}
  Error(Error&&) = default;
  Error& operator=(Error&&) = default;
  Error& operator=(const Error& other) { return *this = Error(other); }

  bool ok() const { return detail_ == nullptr; }
  // MPI_SUCCESS or the class.
  int mpi_class() const { return detail_ ? detail_->mpi_class : 0; }
  std::string message() const { return detail_ ? detail_->message : std::string(); }

 private:
  struct Detail {
    int mpi_class;
    std::string message;
  };
  std::unique_ptr<Detail> detail_;
};

// Returns from the function with the error, if there is one.
#define WEFT_MPI_TRY(expression)                                            \
  do {                                                                      \
    if (::weft::mpi::Error error_ = (expression); !error_.ok()) [[unlikely]] \
      return error_;                                                        \
  } while (false)

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_ERROR_H_
