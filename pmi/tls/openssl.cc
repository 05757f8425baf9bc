#include "pmi/tls/openssl.h"

#include <dlfcn.h>

#include <string>
#include <type_traits>

namespace weft::pmi {
namespace {

constexpr char kLibrary[] = "libssl.so.3";  // which brings libcrypto.so.3

struct Loaded {
  OpenSsl functions{};
  std::string problem;
};

Loaded LoadAll() {
  Loaded loaded;
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    loaded.problem = std::string("TLS needs OpenSSL 3 (Debian's libssl3): ") + (why == nullptr ? kLibrary : why);
    return loaded;
  }
  const auto find = [&](const char* name, auto& function) {
    // A library's dependencies are searched, too.
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && loaded.problem.empty()) loaded.problem = std::string(kLibrary) + " has no " + name;
  };
  OpenSsl& all = loaded.functions;
#define WEFT_FIND(name) find(#name, all.name)
  WEFT_FIND(TLS_method);
  WEFT_FIND(SSL_CTX_new);
  WEFT_FIND(SSL_CTX_free);
  WEFT_FIND(SSL_CTX_ctrl);
  WEFT_FIND(SSL_CTX_set_ciphersuites);
  WEFT_FIND(SSL_CTX_set_num_tickets);
  WEFT_FIND(SSL_CTX_set_psk_client_callback);
  WEFT_FIND(SSL_CTX_set_psk_server_callback);
  WEFT_FIND(SSL_new);
  WEFT_FIND(SSL_free);
  WEFT_FIND(SSL_set_ex_data);
  WEFT_FIND(SSL_get_ex_data);
  WEFT_FIND(SSL_set_bio);
  WEFT_FIND(SSL_set_accept_state);
  WEFT_FIND(SSL_set_connect_state);
  WEFT_FIND(SSL_do_handshake);
  WEFT_FIND(SSL_read);
  WEFT_FIND(SSL_write);
  WEFT_FIND(SSL_get_error);
  WEFT_FIND(BIO_s_mem);
  WEFT_FIND(BIO_new);
  WEFT_FIND(BIO_free);
  WEFT_FIND(BIO_read);
  WEFT_FIND(BIO_write);
  WEFT_FIND(BIO_ctrl_pending);
  WEFT_FIND(ERR_get_error);
  WEFT_FIND(ERR_clear_error);
  WEFT_FIND(ERR_reason_error_string);
#undef WEFT_FIND
  return loaded;
}

}  // namespace

Result<const OpenSsl*, PmiError> OpenSsl::Load() {
  static const Loaded& loaded = *new Loaded(LoadAll());
  if (!loaded.problem.empty()) return PmiError{loaded.problem};
  return &loaded.functions;
}

}  // namespace weft::pmi
