#ifndef PMI_SERVER_NAMES_H_
#define PMI_SERVER_NAMES_H_

#include <cstdint>
#include <map>
#include <string>

#include "pmi/wire/meaning.h"

namespace weft::pmi {

// The port names of MPI_Publish_name. Each belongs to the job whose rank published it, and is removed with that job.
class NameService {
 public:
  static constexpr size_t kMostNames = 65536;
  static constexpr size_t kLongest = 4096;  // bytes of a service or a port

  static bool IsFor(const Request& request);
  // `request`: one for which IsFor() is true. `publisher`: the job of the requesting rank.
  Answer Do(const Request& request, int publisher);
  void Forget(int publisher);
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string port;
    int publisher;
  };

  Answer Publish(const ask::Publish& publish, int publisher);
  Answer Lookup(const ask::Lookup& lookup) const;
  Answer Unpublish(const ask::Unpublish& unpublish);

  std::map<std::string, Entry> entries_;  // by service
};

}  // namespace weft::pmi

#endif  // PMI_SERVER_NAMES_H_
