#include "impi/tester/http.h"

namespace weft::impi::tester {
namespace {

const char* ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 202:
      return "Accepted";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    default:
      return "Conflict";
  }
}

bool IsPrintable(std::string_view text) {
  for (const char character : text) {
    if (character <= ' ' || character > '~') return false;
  }
  return !text.empty();
}

}  // namespace

bool HttpReader::Append(std::string_view bytes) {
  if (request_) return true;  // what follows is not looked at
  text_.append(bytes.substr(0, kMost));
  const size_t end = text_.find("\r\n\r\n");
  if (end == std::string::npos) return text_.size() < kMost;
  const std::string_view line = std::string_view(text_).substr(0, text_.find("\r\n"));
  const size_t first = line.find(' '), second = line.rfind(' ');
  if (first == std::string_view::npos || second == first) return false;
  const std::string_view method = line.substr(0, first), target = line.substr(first + 1, second - first - 1);
  if (!line.substr(second + 1).starts_with("HTTP/1.") || !IsPrintable(method) || !IsPrintable(target) ||
      !target.starts_with('/'))
    return false;
  request_ = HttpRequest{std::string(method), std::string(target)};
  return true;
}

std::string HttpAnswer(int status, std::string_view type, std::string_view body) {
  std::string answer = "HTTP/1.1 " + std::to_string(status) + " " + ReasonOf(status) +
                       "\r\nContent-Type: " + std::string(type) +
                       "; charset=utf-8\r\nContent-Length: " + std::to_string(body.size()) +
                       "\r\nCache-Control: no-store\r\nConnection: close\r\nX-Content-Type-Options: "
                       "nosniff\r\nReferrer-Policy: no-referrer\r\n"
                       "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src "
                       "'self'; frame-ancestors 'none'\r\n\r\n";
  return answer.append(body);
}

}  // namespace weft::impi::tester
