#include "pmi/names.h"

namespace weft::pmi {
namespace {

Message Success(const char* command) { return Message{command}.Add("info", "ok").Add("rc", 0).Add("msg", "success"); }
Message Refusal(const char* command, const char* why) { return Message{command}.Add("rc", 1).Add("msg", why); }

}  // namespace

Message NameService::Answer(const Message& question) {
  const std::string* named = question.Find("service");
  const std::string service = named == nullptr ? std::string() : *named;
  if (question.command == "publish_name") return Publish(service, question.Find("port"));
  return question.command == "lookup_name" ? Lookup(service) : Unpublish(service);
}

Message NameService::Publish(const std::string& service, const std::string* port) {
  if (service.empty() || port == nullptr) return Refusal("publish_result", "service_or_port_missing");
  return ports_.emplace(service, *port).second ? Success("publish_result") : Refusal("publish_result", "service_exists");
}

Message NameService::Lookup(const std::string& service) const {
  const auto found = ports_.find(service);
  if (found == ports_.end()) return Refusal("lookup_result", "service_not_found");
  return Message{"lookup_result"}.Add("port", found->second).Add("info", "ok").Add("rc", 0).Add("msg", "success");
}

Message NameService::Unpublish(const std::string& service) {
  return ports_.erase(service) != 0 ? Success("unpublish_result") : Refusal("unpublish_result", "service_not_found");
}

}  // namespace weft::pmi
