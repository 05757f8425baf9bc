#include "mpi_hybrid/core/info.h"

#include <algorithm>

namespace weft::mpi {
namespace {

HandleTable<Info>& Infos() {
  static auto* table = new HandleTable<Info>(HandleKind::kInfo);
  return *table;
}

auto FindKey(auto& entries, const std::string& key) {
  return std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.first == key; });
}

}  // namespace

Info::~Info() {
  if (IsMade(handle)) Infos().Remove(handle);
}

Info* Info::Find(MPI_Info handle) { return handle == MPI_INFO_ENV ? &EnvironmentInfo() : Infos().Find(handle); }

void Info::Set(const std::string& key, const std::string& value) {
  auto at = FindKey(entries, key);
  if (at != entries.end()) {
    at->second = value;
  } else {
    entries.emplace_back(key, value);
  }
}

std::optional<std::string> Info::Get(const std::string& key) const {
  auto at = FindKey(entries, key);
  if (at == entries.end()) return std::nullopt;
  return at->second;
}

bool Info::Delete(const std::string& key) {
  auto at = FindKey(entries, key);
  if (at == entries.end()) return false;
  entries.erase(at);
  return true;
}

Info& MakeInfo() {
  auto* info = new Info;
  info->AddRef();
  info->handle = Infos().Add(info);
  return *info;
}

Info& EnvironmentInfo() {
  static Info* info = [] {
    auto* made = new Info;
    made->AddRef();
    made->handle = MPI_INFO_ENV;
    return made;
  }();
  return *info;
}

}  // namespace weft::mpi
