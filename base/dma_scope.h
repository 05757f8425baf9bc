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

// While one lives, its thread plays the hardware that reads and writes a program's registered memory: ThreadSanitizer looks away, as it
// would from an adapter's DMA. Who may touch that memory when is agreed on between processes, by messages that the sanitizer cannot
// follow. Around the moving of payload only, so that races within the library are still seen. Costs nothing in other builds.
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
