#ifndef PMI_CLIENT_H_
#define PMI_CLIENT_H_

#include <memory>
#include <string>

#include "base/result.h"
#include "pmi/error.h"

namespace weft::pmi {

// PMI version 1, the client's side (the wire protocol between MPICH's processes and their launcher). One thread at a time; calls
// block. Without PMI_FD and PMI_PORT in the environment it is a job of one (singleton), in which Put, Get and Barrier are local.
class Client {
 public:
  // Connects as PMI_FD (an inherited descriptor) or PMI_PORT and PMI_ID say, and initialises (init, get_maxes, get_appnum,
  // get_universe_size, get_my_kvsname).
  static Result<std::unique_ptr<Client>, PmiError> Connect();
  virtual ~Client() = default;  // closes; Finalize() before it for an orderly end

  virtual bool is_singleton() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int appnum() const = 0;         // -1: unknown
  virtual int universe_size() const = 0;  // -1: unknown
  virtual const std::string& kvs_name() const = 0;
  virtual size_t max_value_length() const = 0;
  // The local descriptor to the launcher, or -1: readable (end of file) when the launcher died.
  virtual int fd() const = 0;

  // No value: success.
  virtual std::string Put(const std::string& key, const std::string& value) = 0;  // empty, or why not
  virtual Result<std::string, PmiError> Get(const std::string& key) = 0;
  virtual std::string Barrier() = 0;
  virtual std::string Finalize() = 0;
  // Tells the launcher to end the job; returns if it does not know how.
  virtual void Abort(int exit_code, const std::string& message) = 0;
};

}  // namespace weft::pmi

#endif  // PMI_CLIENT_H_
