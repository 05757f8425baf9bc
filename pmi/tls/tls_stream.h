#ifndef PMI_TLS_TLS_STREAM_H_
#define PMI_TLS_TLS_STREAM_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "pmi/error.h"
#include "pmi/tls/openssl.h"

namespace weft::pmi {

// One end of a connection with PMI_SOCKTYPE=OpenSSL: TLS 1.3 (RFC 8446) without certificates, in which both ends prove
// that they know a secret. The pre-shared key is SHA-256 of the secret, with the identity "weft-pmi". It is combined
// with a fresh Diffie-Hellman exchange (psk_dhe_ke), so that a recorded connection cannot be read by someone who learns
// the secret later. No I/O: the owner carries the bytes. Not thread-safe.
class TlsStream {
 public:
  enum class Side { kServer, kClient };

  static Result<std::unique_ptr<TlsStream>, PmiError> Make(Side side, std::string_view secret);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // Bytes from the other end, cut anywhere.
  void Append(std::string_view wire);
  // The data from the other end since the last call. It is authenticated.
  std::string TakePlain();
  // Data to send. It is kept until the other end has proven that it knows the secret.
  void Write(std::string_view plain);
  // Bytes to send to the other end.
  std::string TakeWire();

  bool ready() const { return ready_; }    // the other end has proven that it knows the secret
  bool closed() const { return closed_; }  // the other end has said that nothing follows
  // Why the connection has failed, as the end of "it ..."; empty: it has not. TakeWire() may still return bytes.
  const std::string& error() const { return error_; }

 private:
  static constexpr size_t kKeyLength = 32;

  TlsStream(const OpenSsl* functions, Side side, std::string_view secret);
  bool Prepare();
  void Step();
  void Handshake();
  void Read();
  void Flush();
  void Fail(int result);

  static unsigned GiveClientKey(void* ssl, const char* hint, char* identity, unsigned longest_identity, unsigned char* key, unsigned longest_key);
  static unsigned GiveServerKey(void* ssl, const char* identity, unsigned char* key, unsigned longest_key);

  const OpenSsl& openssl_;
  const Side side_;
  std::array<uint8_t, kKeyLength> key_{};
  void* context_ = nullptr;
  void* ssl_ = nullptr;
  void* in_ = nullptr;   // bytes of the wire; both are owned by ssl_
  void* out_ = nullptr;
  std::string to_write_;  // data to send before it is ready
  std::string plain_;
  bool ready_ = false;
  bool closed_ = false;
  std::string error_;
};

}  // namespace weft::pmi

#endif  // PMI_TLS_TLS_STREAM_H_
