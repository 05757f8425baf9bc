#ifndef IMPI_TESTER_HTTP_H_
#define IMPI_TESTER_HTTP_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace weft::impi::tester {

// As much of HTTP/1.1 as the page of -serve needs: one request without a body on each connection (RFC 9112, sections 2
// to 3).
struct HttpRequest {
  std::string method, target;  // "GET", "/state"
};

class HttpReader {
 public:
  static constexpr size_t kMost = 8192;  // bytes, of a request

  // What came. False: it is no request, or too long.
  bool Append(std::string_view bytes);
  // When it is whole.
  const std::optional<HttpRequest>& request() const { return request_; }

 private:
  std::string text_;
  std::optional<HttpRequest> request_;
};

// A whole answer, after which the connection ends. `type`: "text/html".
std::string HttpAnswer(int status, std::string_view type, std::string_view body);

}  // namespace weft::impi::tester

#endif  // IMPI_TESTER_HTTP_H_
