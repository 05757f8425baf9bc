#include "pmi/server/names.h"

#include <variant>

namespace weft::pmi {
namespace {

Answer Refusal(std::string why) { return {.code = 1, .why = std::move(why)}; }

}  // namespace

bool NameService::IsFor(const Request& request) {
  return std::holds_alternative<ask::Publish>(request) || std::holds_alternative<ask::Lookup>(request) ||
         std::holds_alternative<ask::Unpublish>(request);
}

Answer NameService::Do(const Request& request, int publisher) {
  if (const auto* publish = std::get_if<ask::Publish>(&request)) return Publish(*publish, publisher);
  if (const auto* lookup = std::get_if<ask::Lookup>(&request)) return Lookup(*lookup);
  if (const auto* unpublish = std::get_if<ask::Unpublish>(&request)) return Unpublish(*unpublish);
  return Refusal("no name command");
}

void NameService::Forget(int publisher) {
  std::erase_if(entries_, [&](const auto& entry) { return entry.second.publisher == publisher; });
}

Answer NameService::Publish(const ask::Publish& publish, int publisher) {
  if (publish.service.empty() || publish.port.empty()) return Refusal("service or port missing");
  if (publish.service.size() > kLongest || publish.port.size() > kLongest) return Refusal("service or port too long");
  if (entries_.size() >= kMostNames) return Refusal("too many services");
  return entries_.emplace(publish.service, Entry{publish.port, publisher}).second ? Answer{} : Refusal("service exists");
}

Answer NameService::Lookup(const ask::Lookup& lookup) const {
  const auto found = entries_.find(lookup.service);
  if (found == entries_.end()) return Refusal("service not found");
  return {.value = found->second.port};
}

Answer NameService::Unpublish(const ask::Unpublish& unpublish) {
  return entries_.erase(unpublish.service) != 0 ? Answer{} : Refusal("service not found");
}

}  // namespace weft::pmi
