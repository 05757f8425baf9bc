#ifndef PMI_NAMES_H_
#define PMI_NAMES_H_

#include <map>
#include <string>

#include "pmi/message.h"

namespace weft::pmi {

// The names that MPI_Publish_name gives to ports, for all ranks of a job.
class NameService {
 public:
  static bool IsFor(const Message& question) {
    return question.command == "publish_name" || question.command == "lookup_name" || question.command == "unpublish_name";
  }
  // `question`: one of the three.
  Message Answer(const Message& question);

 private:
  Message Publish(const std::string& service, const std::string* port);
  Message Lookup(const std::string& service) const;
  Message Unpublish(const std::string& service);

  std::map<std::string, std::string> ports_;  // by service
};

}  // namespace weft::pmi

#endif  // PMI_NAMES_H_
