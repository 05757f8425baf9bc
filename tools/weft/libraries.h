#ifndef TOOLS_WEFT_LIBRARIES_H_
#define TOOLS_WEFT_LIBRARIES_H_

#include <string>

namespace weft::tool {

// The folder that holds Weft's libibverbs.so.1 and librdmacm.so.1: $WEFT_LIBDIR where it is set, else lib/weft beside
// the folder of this executable (PREFIX/bin/weft -> PREFIX/lib/weft). It need not exist.
std::string LibraryFolder();

// Whether both libraries are in `folder`; if not, `problem` says which is missing and what to do.
bool LibrariesPresent(const std::string& folder, std::string* problem);

// What LD_LIBRARY_PATH must be for a program to load the libraries in `folder` first: the folder, then what the
// variable holds now.
std::string LibraryPathWith(const std::string& folder);

// What LD_PRELOAD names the library by that shows programs Weft's devices in /sys and /dev: its file, or its name alone where the file's
// holds a character that separates entries (it is then found like the libraries). Empty: it is not in `folder`.
std::string PathsLibrary(const std::string& folder);

// What LD_PRELOAD must be for it to be loaded behind what the variable holds now.
std::string PreloadWith(const std::string& library);

// A shared library, opened at once with all its references bound, and closed with this object.
class Library {
 public:
  // `name` is a path or a soname. `error` is the loader's reason on failure; then the object is empty.
  Library(const std::string& name, std::string* error);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  explicit operator bool() const { return handle_ != nullptr; }

  // Points `function` at the library's default version of `symbol`; false when it has none.
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
