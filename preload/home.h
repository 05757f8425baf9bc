#ifndef PRELOAD_HOME_H_
#define PRELOAD_HOME_H_

#include <chrono>
#include <string>

#include "base/result.h"

// Where the trees of a user are: a directory in one that everybody may write (/dev/shm), so that nothing that is there
// is trusted before its owner and its mode were looked at, and no lock is waited for that somebody else can hold.
namespace weft::preload {

struct Refusal {
  std::string reason;  // for users
};

// Makes `path`, which only this user writes and everybody reads (a program may give up its privileges later), or finds
// that it is so already. False with errno: it is not; EPERM: it is somebody else's, or open to others.
bool MakeOwn(const std::string& path);

// The user's directory in `place`: PLACE/weft-UID, or where another user has taken that name PLACE/weft-UID.XXXXXX with
// six characters that nobody can guess, which later calls find again. The reason why there is none otherwise.
Result<std::string, Refusal> FindHome(const std::string& place);

// The lock of a home, for who writes there; goes with the process. It is a file that only its owner can open, unlike
// the directory. False with an error after `patience`, or where that file is not the user's.
bool LockHome(const std::string& home, std::chrono::milliseconds patience, std::string* error);
inline constexpr char kLockName[] = "lock";

}  // namespace weft::preload

#endif  // PRELOAD_HOME_H_
