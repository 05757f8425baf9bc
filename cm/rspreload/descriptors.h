#ifndef CM_RSPRELOAD_DESCRIPTORS_H_
#define CM_RSPRELOAD_DESCRIPTORS_H_

namespace weft::rspreload {

// Which of the program's descriptors stand for which rsocket. Several may (dup). The kernel's descriptor behind each is never read
// or written. Descriptors of kMost and above are never rsockets. Thread safe.
inline constexpr int kMost = 65536;
inline constexpr int kNone = -1;  // an ordinary descriptor
inline constexpr int kDead = -2;  // an rsocket of the process that this one was forked from

// The rsocket, kNone or kDead.
int Lookup(int fd);
// False in the child of a vfork, which has this memory and other descriptors: what it closes is open here.
bool IsOwner();
// Gives `rsocket` a descriptor of its own. -1 and errno; then `rsocket` is still the caller's.
int Attach(int rsocket, bool close_on_exec);
// `fd`, which was made by dup(2) or its kin, stands for what `rsocket` is.
void Share(int fd, int rsocket);
// `fd` stands for nothing any more. True: nothing else stands for its rsocket either.
bool Detach(int fd);

}  // namespace weft::rspreload

#endif  // CM_RSPRELOAD_DESCRIPTORS_H_
