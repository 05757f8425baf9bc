#ifndef BASE_PROCESSORS_H_
#define BASE_PROCESSORS_H_

namespace weft {

// On which the calling thread may run; at least 1.
int ProcessorCount();

// Whether the thread that asks first may run on one only, as in a container that has no other: what it waits for may have to run there, too.
bool OnlyOneProcessor();

}  // namespace weft

#endif  // BASE_PROCESSORS_H_
