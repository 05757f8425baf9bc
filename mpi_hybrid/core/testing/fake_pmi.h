#ifndef MPI_HYBRID_CORE_TESTING_FAKE_PMI_H_
#define MPI_HYBRID_CORE_TESTING_FAKE_PMI_H_

#include <map>
#include <string>

#include "pmi/client.h"

namespace weft::mpi::testing {

using PmiSpace = std::map<std::string, std::string>;

// The launcher's side of PMI: a map that all processes share.
class FakePmi : public pmi::Client {
 public:
  FakePmi(PmiSpace& space, int rank, int size) : space_(space), rank_(rank), size_(size) {}
  bool is_singleton() const override { return false; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int appnum() const override { return 0; }
  int universe_size() const override { return -1; }
  const std::string& kvs_name() const override { return name_; }
  size_t max_value_length() const override { return 1024; }
  int fd() const override { return -1; }
  std::string Put(const std::string& key, const std::string& value) override {
    space_[key] = value;
    return "";
  }
  Result<std::string, pmi::PmiError> Get(const std::string& key) override {
    const auto found = space_.find(key);
    if (found == space_.end()) return pmi::PmiError{"no " + key};
    return found->second;
  }
  std::string Barrier() override { return ""; }
  std::string Finalize() override { return ""; }
  void Abort(int, const std::string&) override {}

 private:
  PmiSpace& space_;
  const int rank_, size_;
  const std::string name_ = "kvs";
};

}  // namespace weft::mpi::testing

#endif  // MPI_HYBRID_CORE_TESTING_FAKE_PMI_H_
