#ifndef BASE_PROCESSORS_H_
#define BASE_PROCESSORS_H_

namespace weft {

// Number of processors on which the calling thread may run; at least 1.
int ProcessorCount();

// Whether the first thread that called this may run on one processor only, as in a container with a single processor. A
// thread that spins there may keep the thread that it waits for from running.
bool OnlyOneProcessor();

}  // namespace weft

#endif  // BASE_PROCESSORS_H_
