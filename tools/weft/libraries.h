#ifndef TOOLS_WEFT_LIBRARIES_H_
#define TOOLS_WEFT_LIBRARIES_H_

#include <string>

namespace weft::tool {

// The folder with Weft's libibverbs.so.1 and librdmacm.so.1: $WEFT_LIBDIR if set, otherwise lib/weft next to the folder
// of this executable (PREFIX/bin/weft -> PREFIX/lib/weft). It need not exist.
std::string LibraryFolder();

// Whether both libraries are in `folder`. If not, `problem` tells which is missing and what to do.
bool LibrariesPresent(const std::string& folder, std::string* problem);

// The value of LD_LIBRARY_PATH with which a program loads the libraries in `folder` first: the folder, then the current
// value of the variable.
std::string LibraryPathWith(const std::string& folder);

// The name for LD_PRELOAD of the library that shows Weft's devices in /sys and /dev to programs. This is its file, or
// its bare name if the file's contains a character that separates entries (the loader then finds it like the
// libraries). Empty: it is not in `folder`.
std::string PathsLibrary(const std::string& folder);

// The value of LD_PRELOAD that loads it after what the variable names now.
std::string PreloadWith(const std::string& library);

// A shared library. It is opened with all references bound at once, and closed with this object.
class Library {
 public:
  // `name` is a path or a soname. On failure `error` is the loader's reason, and the object is empty.
  Library(const std::string& name, std::string* error);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  explicit operator bool() const { return handle_ != nullptr; }

  // Points `function` to the library's default version of `symbol`. Returns false if it has none.
  template <typename Function>
  bool Find(const char* symbol, Function** function) const {
    *function = reinterpret_cast<Function*>(Symbol(symbol));
    return *function != nullptr;
  }
  bool Has(const char* symbol, const char* version) const;

  // The file that was loaded.
  std::string Path() const;

 private:
  void* Symbol(const char* symbol) const;

  void* handle_;
};

}  // namespace weft::tool

#endif  // TOOLS_WEFT_LIBRARIES_H_
