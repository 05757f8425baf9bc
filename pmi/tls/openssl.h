#ifndef PMI_TLS_OPENSSL_H_
#define PMI_TLS_OPENSSL_H_

#include <cstddef>

#include "base/result.h"
#include "pmi/error.h"

namespace weft::pmi {

// The few functions of OpenSSL 3 that a TLS stream needs. The library is loaded when the first stream is made; a
// process without TLS does not need it. Its types are opaque here. The names are those of the manual: SSL_new(3) and so
// on.
struct OpenSsl {
  using PskClientCallback = unsigned (*)(void* ssl, const char* hint, char* identity, unsigned longest_identity, unsigned char* key, unsigned longest_key);
  using PskServerCallback = unsigned (*)(void* ssl, const char* identity, unsigned char* key, unsigned longest_key);

  const void* (*TLS_method)();
  void* (*SSL_CTX_new)(const void* method);
  void (*SSL_CTX_free)(void* context);
  long (*SSL_CTX_ctrl)(void* context, int command, long number, void* pointer);
  int (*SSL_CTX_set_ciphersuites)(void* context, const char* names);
  int (*SSL_CTX_set_num_tickets)(void* context, size_t count);
  void (*SSL_CTX_set_psk_client_callback)(void* context, PskClientCallback callback);
  void (*SSL_CTX_set_psk_server_callback)(void* context, PskServerCallback callback);
  void* (*SSL_new)(void* context);
  void (*SSL_free)(void* ssl);
  int (*SSL_set_ex_data)(void* ssl, int index, void* data);
  void* (*SSL_get_ex_data)(const void* ssl, int index);
  void (*SSL_set_bio)(void* ssl, void* in, void* out);
  void (*SSL_set_accept_state)(void* ssl);
  void (*SSL_set_connect_state)(void* ssl);
  int (*SSL_do_handshake)(void* ssl);
  int (*SSL_read)(void* ssl, void* bytes, int most);
  int (*SSL_write)(void* ssl, const void* bytes, int count);
  int (*SSL_get_error)(const void* ssl, int result);
  const void* (*BIO_s_mem)();
  void* (*BIO_new)(const void* type);
  int (*BIO_free)(void* bio);
  int (*BIO_read)(void* bio, void* bytes, int most);
  int (*BIO_write)(void* bio, const void* bytes, int count);
  size_t (*BIO_ctrl_pending)(void* bio);
  unsigned long (*ERR_get_error)();
  void (*ERR_clear_error)();
  const char* (*ERR_reason_error_string)(unsigned long error);

  // Constants of SSL_CTX_ctrl and SSL_get_error.
  static constexpr int kSetMinimumVersion = 123, kSetMaximumVersion = 124, kTls13 = 0x0304;
  static constexpr int kWantRead = 2, kWantWrite = 3, kZeroReturn = 6;

  // The functions, which are never unloaded, or why there are none.
  static Result<const OpenSsl*, PmiError> Load();
};

}  // namespace weft::pmi

#endif  // PMI_TLS_OPENSSL_H_
