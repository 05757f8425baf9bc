#include "pmi/tls/tls_stream.h"

#include <nettle/sha2.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

namespace weft::pmi {
namespace {

constexpr char kIdentity[] = "weft-pmi";
constexpr int kThis = 0;  // of SSL_set_ex_data: the index that is the program's own

}  // namespace

Result<std::unique_ptr<TlsStream>, PmiError> TlsStream::Make(Side side, std::string_view secret) {
  const auto functions = OpenSsl::Load();
  if (!functions) return functions.error();
  std::unique_ptr<TlsStream> stream(new TlsStream(functions.value(), side, secret));
  if (!stream->Prepare()) return PmiError{"OpenSSL cannot make a TLS 1.3 connection: it has no memory, or its configuration forbids it"};
  stream->Step();
  return stream;
}

TlsStream::TlsStream(const OpenSsl* functions, Side side, std::string_view secret) : openssl_(*functions), side_(side) {
  sha256_ctx hash;
  sha256_init(&hash);
  sha256_update(&hash, secret.size(), reinterpret_cast<const uint8_t*>(secret.data()));
  sha256_digest(&hash, key_.size(), key_.data());
}

TlsStream::~TlsStream() {
  if (ssl_ != nullptr) openssl_.SSL_free(ssl_);
  if (context_ != nullptr) openssl_.SSL_CTX_free(context_);
}

bool TlsStream::Prepare() {
  openssl_.ERR_clear_error();
  context_ = openssl_.SSL_CTX_new(openssl_.TLS_method());
  if (context_ == nullptr) return false;
  for (const int command : {OpenSsl::kSetMinimumVersion, OpenSsl::kSetMaximumVersion}) {
    if (openssl_.SSL_CTX_ctrl(context_, command, OpenSsl::kTls13, nullptr) != 1) return false;
  }
  // That of a key without a certificate has SHA-256 (RFC 8446 section 4.2.11). No tickets: there is nothing to resume.
  if (openssl_.SSL_CTX_set_ciphersuites(context_, "TLS_AES_128_GCM_SHA256") != 1 || openssl_.SSL_CTX_set_num_tickets(context_, 0) != 1) return false;
  openssl_.SSL_CTX_set_psk_client_callback(context_, &GiveClientKey);
  openssl_.SSL_CTX_set_psk_server_callback(context_, &GiveServerKey);
  ssl_ = openssl_.SSL_new(context_);
  in_ = openssl_.BIO_new(openssl_.BIO_s_mem());
  out_ = openssl_.BIO_new(openssl_.BIO_s_mem());
  if (ssl_ == nullptr || in_ == nullptr || out_ == nullptr || openssl_.SSL_set_ex_data(ssl_, kThis, this) != 1) {
    if (in_ != nullptr) openssl_.BIO_free(in_);
    if (out_ != nullptr) openssl_.BIO_free(out_);
    return false;
  }
  openssl_.SSL_set_bio(ssl_, in_, out_);
  side_ == Side::kServer ? openssl_.SSL_set_accept_state(ssl_) : openssl_.SSL_set_connect_state(ssl_);
  return true;
}

unsigned TlsStream::GiveClientKey(void* ssl, const char*, char* identity, unsigned longest_identity, unsigned char* key, unsigned longest_key) {
  const auto& stream = *static_cast<TlsStream*>(OpenSsl::Load().value()->SSL_get_ex_data(ssl, kThis));
  if (longest_identity < sizeof(kIdentity) || longest_key < kKeyLength) return 0;
  std::memcpy(identity, kIdentity, sizeof(kIdentity));
  std::memcpy(key, stream.key_.data(), kKeyLength);
  return kKeyLength;
}

unsigned TlsStream::GiveServerKey(void* ssl, const char* identity, unsigned char* key, unsigned longest_key) {
  const auto& stream = *static_cast<TlsStream*>(OpenSsl::Load().value()->SSL_get_ex_data(ssl, kThis));
  if (std::strcmp(identity, kIdentity) != 0 || longest_key < kKeyLength) return 0;
  std::memcpy(key, stream.key_.data(), kKeyLength);
  return kKeyLength;
}

void TlsStream::Append(std::string_view wire) {
  while (!wire.empty() && error_.empty() && !closed_) {
    const int count = static_cast<int>(std::min<size_t>(wire.size(), INT_MAX));
    openssl_.ERR_clear_error();
    const int taken = openssl_.BIO_write(in_, wire.data(), count);
    if (taken <= 0) {
      error_ = "could not be read: OpenSSL has no memory";
      return;
    }
    wire.remove_prefix(static_cast<size_t>(taken));
    Step();
  }
}

void TlsStream::Step() {
  if (!ready_) Handshake();
  if (!ready_) return;
  Flush();
  Read();
}

void TlsStream::Handshake() {
  openssl_.ERR_clear_error();
  const int result = openssl_.SSL_do_handshake(ssl_);
  ready_ = result == 1;
  if (!ready_) Fail(result);
}

void TlsStream::Read() {
  char block[16384];
  while (error_.empty() && !closed_) {
    openssl_.ERR_clear_error();
    const int count = openssl_.SSL_read(ssl_, block, sizeof(block));
    if (count <= 0) return Fail(count);
    plain_.append(block, static_cast<size_t>(count));
  }
}

void TlsStream::Write(std::string_view plain) {
  to_write_ += plain;
  if (ready_) Flush();
}

// A memory takes all at once.
void TlsStream::Flush() {
  while (!to_write_.empty() && error_.empty()) {
    openssl_.ERR_clear_error();
    const int count = openssl_.SSL_write(ssl_, to_write_.data(), static_cast<int>(std::min<size_t>(to_write_.size(), INT_MAX)));
    if (count <= 0) return Fail(count);
    to_write_.erase(0, static_cast<size_t>(count));
  }
}

// Nothing where only more bytes are needed.
void TlsStream::Fail(int result) {
  const int kind = openssl_.SSL_get_error(ssl_, result);
  if (kind == OpenSsl::kWantRead || kind == OpenSsl::kWantWrite) return;
  if (kind == OpenSsl::kZeroReturn) {
    closed_ = true;
    return;
  }
  const unsigned long code = openssl_.ERR_get_error();
  const char* reason = code == 0 ? nullptr : openssl_.ERR_reason_error_string(code);
  error_ = (ready_ ? "broke TLS: " : "did not prove by TLS that it knows the secret: ") + std::string(reason == nullptr ? "unexpected end" : reason);
}

std::string TlsStream::TakePlain() { return std::exchange(plain_, {}); }

std::string TlsStream::TakeWire() {
  std::string wire(openssl_.BIO_ctrl_pending(out_), '\0');
  if (!wire.empty()) openssl_.BIO_read(out_, wire.data(), static_cast<int>(wire.size()));
  return wire;
}

}  // namespace weft::pmi
