#include "tools/weft/libraries.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace weft::tool {

namespace fs = std::filesystem;

std::string LibraryFolder() {
  if (const char* set = std::getenv("WEFT_LIBDIR"); set != nullptr && *set != '\0') return fs::absolute(set).string();
  std::error_code error;
  fs::path self = fs::read_symlink("/proc/self/exe", error);
  return (self.parent_path().parent_path() / "lib" / "weft").string();
}

bool LibrariesPresent(const std::string& folder, std::string* problem) {
  for (const char* name : {"libibverbs.so.1", "librdmacm.so.1"}) {
    std::error_code error;
    if (fs::exists(fs::path(folder) / name, error)) continue;
    *problem = std::string(name) + " is not in " + folder +
               ": run ./install PREFIX again, or set WEFT_LIBDIR to the folder that holds Weft's libraries";
    return false;
  }
  return true;
}

std::string LibraryPathWith(const std::string& folder) {
  const char* now = std::getenv("LD_LIBRARY_PATH");
  if (now == nullptr || *now == '\0') return folder;
  std::string rest = now;
  if (rest == folder || rest.starts_with(folder + ":")) return rest;
  return folder + ":" + rest;
}

std::string PathsLibrary(const std::string& folder) {
  static constexpr char kName[] = "libweft_paths.so";
  const std::string path = (fs::path(folder) / kName).string();
  std::error_code error;
  if (!fs::exists(path, error)) return "";
  return path.find_first_of(" :") == path.npos ? path : kName;
}

std::string PreloadWith(const std::string& library) {
  const char* now = std::getenv("LD_PRELOAD");
  if (now == nullptr || *now == '\0') return library;
  const std::string all = std::string(":") + now + ":";
  return all.find(":" + library + ":") != all.npos ? now : now + (":" + library);
}

Library::Library(const std::string& name, std::string* error) : handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL)) {
  if (handle_ == nullptr) *error = dlerror();
}

Library::~Library() {
  if (handle_ != nullptr) dlclose(handle_);
}

void* Library::Symbol(const char* symbol) const { return dlsym(handle_, symbol); }

bool Library::Has(const char* symbol, const char* version) const { return dlvsym(handle_, symbol, version) != nullptr; }

std::string Library::Path() const {
  link_map* map = nullptr;
  if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return "";
  return map->l_name;
}

}  // namespace weft::tool
