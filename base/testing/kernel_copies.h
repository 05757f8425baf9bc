#ifndef BASE_TESTING_KERNEL_COPIES_H_
#define BASE_TESTING_KERNEL_COPIES_H_

namespace weft::testing {

// Number of calls of process_vm_readv(2) and process_vm_writev(2) by this process so far. A program that links this
// gets wrappers of both in front of the C library's.
unsigned KernelCopies();

}  // namespace weft::testing

#endif  // BASE_TESTING_KERNEL_COPIES_H_
