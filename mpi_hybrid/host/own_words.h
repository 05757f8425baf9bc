#ifndef MPI_HYBRID_HOST_OWN_WORDS_H_
#define MPI_HYBRID_HOST_OWN_WORDS_H_

#include <string>

namespace weft::mpi::host {

// Words in memory shared by the host's ranks that only this process writes, and whose values it knows: counters of what
// it did, locks that it holds. Another process of the user may write there all the same. A rank that waits for such a
// word would then wait forever, and only the owner of the word can detect it. Therefore a process that waits for long
// checks all of its own words, including those of windows and communicators that are unrelated to the wait. Construct,
// destroy and check with the library's lock held.
class OwnWords {
 public:
  OwnWords(const OwnWords&) = delete;
  OwnWords& operator=(const OwnWords&) = delete;

  // Checks the words of all such objects. Returns a description, for an error message, of the first word that differs
  // from what this process wrote. Empty: there is none.
  static std::string FindOverwritten();

 protected:
  OwnWords();
  ~OwnWords();

 private:
  virtual std::string Overwritten() const = 0;
};

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_HOST_OWN_WORDS_H_
