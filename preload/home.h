#ifndef PRELOAD_HOME_H_
#define PRELOAD_HOME_H_

#include <chrono>
#include <string>

#include "base/result.h"

// Where the trees of a user are: a directory below one that every user may write (/dev/shm). So nothing found there is
// trusted before its owner and mode are checked, and no lock is waited for that another user can hold.
namespace weft::preload {

struct Refusal {
  std::string reason;  // for users
};

// Makes `path`, which only this user writes and all users read (a program may give up its privileges later), or checks
// that it is already so. Returns false and sets errno if it is not; EPERM: it belongs to another user, or is writable
// by others.
bool MakeOwn(const std::string& path);

// The user's directory in `place`: PLACE/weft-UID. If another user has taken that name, PLACE/weft-UID.XXXXXX with six
// random characters, which later calls find again. Otherwise the reason why there is none.
Result<std::string, Refusal> FindHome(const std::string& place);

// Takes the lock of a home for writing; it is released when the process ends. The lock is a file that only its owner
// can open, unlike the directory. Returns false with an error after `patience`, or if that file does not belong to the
// user.
bool LockHome(const std::string& home, std::chrono::milliseconds patience, std::string* error);
inline constexpr char kLockName[] = "lock";

}  // namespace weft::preload

#endif  // PRELOAD_HOME_H_
