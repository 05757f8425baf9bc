#ifndef CM_RSPRELOAD_DESCRIPTORS_H_
#define CM_RSPRELOAD_DESCRIPTORS_H_

namespace weft::rspreload {

// Maps the program's descriptors to rsockets. Several descriptors may stand for one rsocket (dup). The kernel's
// descriptor of each is never read or written. Descriptors of kMost and above are never rsockets. Thread safe.
inline constexpr int kMost = 65536;
inline constexpr int kNone = -1;  // an ordinary descriptor
inline constexpr int kDead = -2;  // an rsocket of the parent process before a fork

// The rsocket, kNone or kDead.
int Lookup(int fd);
// False in the child of a vfork, which shares this memory but not the descriptors: what it closes stays open here.
bool IsOwner();
// Gives `rsocket` a descriptor of its own. -1 and errno: the caller still owns `rsocket`.
int Attach(int rsocket, bool close_on_exec);
// `fd`, made by dup(2) or a similar call, stands for the same rsocket as `rsocket`.
void Share(int fd, int rsocket);
// `fd` no longer stands for an rsocket. Returns true if no other descriptor stands for that rsocket.
bool Detach(int fd);

}  // namespace weft::rspreload

#endif  // CM_RSPRELOAD_DESCRIPTORS_H_
