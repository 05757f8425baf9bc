#ifndef BASE_DMA_SCOPE_H_
#define BASE_DMA_SCOPE_H_

#if defined(__SANITIZE_THREAD__)
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace weft {

// While a DmaScope lives, its thread acts as the adapter that reads and writes a program's registered memory, and
// ThreadSanitizer ignores its accesses, as it would ignore DMA. Processes agree by messages when each may use that
// memory, and the sanitizer cannot follow those. Only code that moves payload is inside a scope, so races within the
// library are still found. Costs nothing in other builds.
class DmaScope {
 public:
#if defined(__SANITIZE_THREAD__)
  DmaScope() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~DmaScope() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
#else
  DmaScope() {}
  ~DmaScope() {}
#endif
  DmaScope(const DmaScope&) = delete;
  DmaScope& operator=(const DmaScope&) = delete;
};

}  // namespace weft

#endif  // BASE_DMA_SCOPE_H_
