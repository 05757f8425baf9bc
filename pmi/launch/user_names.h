#ifndef PMI_LAUNCH_USER_NAMES_H_
#define PMI_LAUNCH_USER_NAMES_H_

#include <map>
#include <optional>
#include <string>

namespace weft::pmi {

// Names that all jobs of one user on one host see without an option: a file for each in a directory of the user's, whose publisher holds a lock on it
// (flock(2)) for as long as the name is published. The lock goes with the publisher, however it ends: a file without a lock is none.
//
// Sharing is a courtesy. What cannot be shared (no directory that is this user's alone, another job's name, a service longer than a file's name may be) is
// known to the jobs of its own launcher only, as before. Nothing here waits.
class UserNames {
 public:
  // $XDG_RUNTIME_DIR/weft-names; /tmp/weft-names-UID where there is none.
  static std::string DirectoryOfUser();

  explicit UserNames(std::string directory) : directory_(std::move(directory)) {}
  ~UserNames();
  UserNames(const UserNames&) = delete;
  UserNames& operator=(const UserNames&) = delete;

  // False: it is not shared.
  bool Publish(const std::string& service, const std::string& port);
  // What this object published; nothing, where it did not.
  void Unpublish(const std::string& service);
  // Of any job of the user's.
  std::optional<std::string> Lookup(const std::string& service) const;

 private:
  std::string PathOf(const std::string& service) const;  // empty: there is none
  bool MakeDirectory() const;

  const std::string directory_;
  std::map<std::string, int> published_;  // by service: the descriptor that has the lock
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_USER_NAMES_H_
