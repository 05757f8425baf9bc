#ifndef PMI_LAUNCH_USER_NAMES_H_
#define PMI_LAUNCH_USER_NAMES_H_

#include <map>
#include <optional>
#include <string>

namespace weft::pmi {

// Names that all jobs of one user on one host see without an option. Each name is a file in a directory of the user.
// Its publisher holds a lock on the file (flock(2)) as long as the name is published. The lock is released when the
// publisher ends in any way: a file without a lock counts as no name.
//
// Sharing is optional. A name that cannot be shared is visible only to the jobs of its own launcher. (Reasons: there is
// no directory that belongs to this user alone, another job has published the name, or the service is longer than a
// file name may be.) No function waits.
class UserNames {
 public:
  // $XDG_RUNTIME_DIR/weft-names, or /tmp/weft-names-UID if that variable is not set.
  static std::string DirectoryOfUser();

  explicit UserNames(std::string directory) : directory_(std::move(directory)) {}
  ~UserNames();
  UserNames(const UserNames&) = delete;
  UserNames& operator=(const UserNames&) = delete;

  // False: the name is not shared.
  bool Publish(const std::string& service, const std::string& port);
  // Removes a name that this object has published; no effect on other names.
  void Unpublish(const std::string& service);
  // A name of any job of the user.
  std::optional<std::string> Lookup(const std::string& service) const;

 private:
  std::string PathOf(const std::string& service) const;  // empty: there is none
  bool MakeDirectory() const;

  const std::string directory_;
  std::map<std::string, int> published_;  // by service: the descriptor that holds the lock
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_USER_NAMES_H_
