#include "mpi_hybrid/core/info.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/environment_info.h"

// Info objects (MPI 4.0 chapter 10). They may be used at any time, before MPI_Init too.
namespace weft::mpi {
namespace {

template <typename Body>
int OnInfo(const char* name, MPI_Info handle, Body body) {
  return AtAnyTime(name, [&]() -> Error {
    Info* info = Info::Find(handle);
    if (info != nullptr) return body(*info);
    if (handle == MPI_INFO_NULL) return Error(MPI_ERR_INFO, "info is MPI_INFO_NULL");
    return Error(MPI_ERR_INFO, "info " + std::to_string(handle) + " is not an info object (never made, or freed)");
  });
}

Error CheckKey(const char* key) {
  WEFT_MPI_TRY(CheckNotNull(key, "key"));
  const size_t length = strnlen(key, MPI_MAX_INFO_KEY + 1);
  if (length == 0) return Error(MPI_ERR_INFO_KEY, "key is empty");
  if (length > MPI_MAX_INFO_KEY)
    return Error(MPI_ERR_INFO_KEY, "key is longer than MPI_MAX_INFO_KEY, " + std::to_string(MPI_MAX_INFO_KEY));
  return {};
}

Error CheckValue(const char* value) {
  WEFT_MPI_TRY(CheckNotNull(value, "value"));
  if (strnlen(value, MPI_MAX_INFO_VAL + 1) <= MPI_MAX_INFO_VAL) return {};
  return Error(MPI_ERR_INFO_VALUE, "value is longer than MPI_MAX_INFO_VAL, " + std::to_string(MPI_MAX_INFO_VAL));
}

Error CheckChangeable(const Info& info) {
  if (info.handle != MPI_INFO_ENV) return {};
  return Error(MPI_ERR_INFO, "MPI_INFO_ENV cannot be changed or freed");
}

// At most `room` characters with the terminating zero.
void CopyValue(const std::string& text, size_t room, char* to) {
  const size_t length = std::min(text.size(), room - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

int PMPI_Info_create(MPI_Info* info) {
  return AtAnyTime("MPI_Info_create", [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(info, "info"));
    *info = MakeInfo().handle;
    return {};
  });
}
WEFT_MPI_ALIAS(Info_create)

int PMPI_Info_create_env(int, char**, MPI_Info* info) {
  return AtAnyTime("MPI_Info_create_env", [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(info, "info"));
    if (EnvironmentInfo().entries.empty()) FillEnvironmentInfo();
    Info& made = MakeInfo();
    made.entries = EnvironmentInfo().entries;
    *info = made.handle;
    return {};
  });
}
WEFT_MPI_ALIAS(Info_create_env)

int PMPI_Info_dup(MPI_Info info, MPI_Info* newinfo) {
  return OnInfo("MPI_Info_dup", info, [&](Info& from) -> Error {
    WEFT_MPI_TRY(CheckNotNull(newinfo, "newinfo"));
    Info& made = MakeInfo();
    made.entries = from.entries;
    *newinfo = made.handle;
    return {};
  });
}
WEFT_MPI_ALIAS(Info_dup)

int PMPI_Info_free(MPI_Info* info) {
  return OnInfo("MPI_Info_free", info != nullptr ? *info : MPI_INFO_NULL, [&](Info& freed) -> Error {
    WEFT_MPI_TRY(CheckChangeable(freed));
    freed.Release();
    *info = MPI_INFO_NULL;
    return {};
  });
}
WEFT_MPI_ALIAS(Info_free)

int PMPI_Info_set(MPI_Info info, const char* key, const char* value) {
  return OnInfo("MPI_Info_set", info, [&](Info& i) -> Error {
    WEFT_MPI_TRY(CheckKey(key));
    WEFT_MPI_TRY(CheckValue(value));
    WEFT_MPI_TRY(CheckChangeable(i));
    i.Set(key, value);
    return {};
  });
}
WEFT_MPI_ALIAS(Info_set)

int PMPI_Info_delete(MPI_Info info, const char* key) {
  return OnInfo("MPI_Info_delete", info, [&](Info& i) -> Error {
    WEFT_MPI_TRY(CheckKey(key));
    WEFT_MPI_TRY(CheckChangeable(i));
    if (i.Delete(key)) return {};
    return Error(MPI_ERR_INFO_NOKEY, "the info object has no key " + std::string(key));
  });
}
WEFT_MPI_ALIAS(Info_delete)

int PMPI_Info_get(MPI_Info info, const char* key, int valuelen, char* value, int* flag) {
  return OnInfo("MPI_Info_get", info, [&](Info& i) -> Error {
    WEFT_MPI_TRY(CheckKey(key));
    WEFT_MPI_TRY(CheckNotNull(value, "value"));
    WEFT_MPI_TRY(CheckNotNull(flag, "flag"));
    if (valuelen < 0) return Error(MPI_ERR_ARG, "valuelen " + std::to_string(valuelen) + " is negative");
    const auto found = i.Get(key);
    *flag = found.has_value();
    // `valuelen` does not count the terminating zero.
    if (found) CopyValue(*found, static_cast<size_t>(valuelen) + 1, value);
    return {};
  });
}
WEFT_MPI_ALIAS(Info_get)

int PMPI_Info_get_string(MPI_Info info, const char* key, int* buflen, char* value, int* flag) {
  return OnInfo("MPI_Info_get_string", info, [&](Info& i) -> Error {
    WEFT_MPI_TRY(CheckKey(key));
    WEFT_MPI_TRY(CheckNotNull(buflen, "buflen"));
    WEFT_MPI_TRY(CheckNotNull(flag, "flag"));
    if (*buflen < 0) return Error(MPI_ERR_ARG, "buflen " + std::to_string(*buflen) + " is negative");
    if (*buflen > 0) WEFT_MPI_TRY(CheckNotNull(value, "value"));
    const auto found = i.Get(key);
    *flag = found.has_value();
    if (!found) return {};
    // `buflen` counts the terminating zero, in and out.
    if (*buflen > 0) CopyValue(*found, static_cast<size_t>(*buflen), value);
    *buflen = static_cast<int>(found->size()) + 1;
    return {};
  });
}
WEFT_MPI_ALIAS(Info_get_string)

int PMPI_Info_get_valuelen(MPI_Info info, const char* key, int* valuelen, int* flag) {
  return OnInfo("MPI_Info_get_valuelen", info, [&](Info& i) -> Error {
    WEFT_MPI_TRY(CheckKey(key));
    WEFT_MPI_TRY(CheckNotNull(valuelen, "valuelen"));
    WEFT_MPI_TRY(CheckNotNull(flag, "flag"));
    const auto found = i.Get(key);
    *flag = found.has_value();
    if (found) *valuelen = static_cast<int>(found->size());
    return {};
  });
}
WEFT_MPI_ALIAS(Info_get_valuelen)

int PMPI_Info_get_nkeys(MPI_Info info, int* nkeys) {
  return OnInfo("MPI_Info_get_nkeys", info, [&](Info& i) -> Error {
    WEFT_MPI_TRY(CheckNotNull(nkeys, "nkeys"));
    *nkeys = static_cast<int>(i.entries.size());
    return {};
  });
}
WEFT_MPI_ALIAS(Info_get_nkeys)

int PMPI_Info_get_nthkey(MPI_Info info, int n, char* key) {
  return OnInfo("MPI_Info_get_nthkey", info, [&](Info& i) -> Error {
    WEFT_MPI_TRY(CheckNotNull(key, "key"));
    if (n < 0 || static_cast<size_t>(n) >= i.entries.size()) {
      return Error(MPI_ERR_ARG,
                   "n " + std::to_string(n) + " is not the number of a key (there are " + std::to_string(i.entries.size()) + ")");
    }
    CopyValue(i.entries[static_cast<size_t>(n)].first, MPI_MAX_INFO_KEY + 1, key);
    return {};
  });
}
WEFT_MPI_ALIAS(Info_get_nthkey)
