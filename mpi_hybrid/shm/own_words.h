#ifndef MPI_HYBRID_SHM_OWN_WORDS_H_
#define MPI_HYBRID_SHM_OWN_WORDS_H_

#include <string>

namespace weft::mpi::shm {

// Words in memory that the host's ranks share and that only this process writes, each of which it knows: counters of what it did, locks that it
// holds. Another process of the user may write there all the same. A rank that waits for such a word would wait for ever, and only the
// word's owner can tell. So a process that waits for long looks at all of its own words, of windows and communicators that have nothing to do with the
// wait, too. Made, destroyed and looked at with the library's lock.
class OwnWords {
 public:
  OwnWords(const OwnWords&) = delete;
  OwnWords& operator=(const OwnWords&) = delete;

  // Of all that there are: what the first one is that is not as this process left it, for an error message. Empty: there is none.
  static std::string FindOverwritten();

 protected:
  OwnWords();
  ~OwnWords();

 private:
  virtual std::string Overwritten() const = 0;
};

}  // namespace weft::mpi::shm

#endif  // MPI_HYBRID_SHM_OWN_WORDS_H_
