#ifndef TESTS_HOSTILE_NO_DESCRIPTORS_LIMIT_H_
#define TESTS_HOSTILE_NO_DESCRIPTORS_LIMIT_H_

#ifdef __cplusplus
extern "C" {
#endif

/* Lowers this process's limit of open files for good, the hard one too, which Weft would raise the soft one to. */
void LowerDescriptorLimit(unsigned long count);

#ifdef __cplusplus
}
#endif

#endif  // TESTS_HOSTILE_NO_DESCRIPTORS_LIMIT_H_
