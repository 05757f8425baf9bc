// Bytes of a stranger at both ends of TLS; and, where the first byte is odd, changes on the way between two that know the secret: what comes
// out is what was said, or nothing more.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "pmi/tls/tls_stream.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using weft::pmi::TlsStream;
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 2), size - 2);
  auto server = TlsStream::Make(TlsStream::Side::kServer, "open sesame"), client = TlsStream::Make(TlsStream::Side::kClient, "open sesame");
  WEFT_CHECK(server.ok() && client.ok());
  TlsStream& one = *server.value();
  TlsStream& other = *client.value();
  if ((data[0] & 1) == 0) {
    const size_t cut = data[1] % (bytes.size() + 1);
    for (TlsStream* stream : {&one, &other}) {
      stream->Append(bytes.substr(0, cut));
      stream->Append(bytes.substr(cut));
      WEFT_CHECK(!stream->ready() && stream->TakePlain().empty());
    }
    return 0;
  }
  static constexpr char kSaid[] = "cmd=initack pmiid=0\n";
  other.Write(kSaid);
  size_t changed = 0;
  std::string heard;
  for (int round = 0; round < 3; ++round) {
    std::string wire = other.TakeWire();
    // Each two bytes are a place and what to change there; place 255 is none.
    for (; changed + 1 < bytes.size() && !wire.empty(); changed += 2) {
      if (bytes[changed] == '\xff') break;
      wire[static_cast<uint8_t>(bytes[changed]) * 2 % wire.size()] ^= bytes[changed + 1];
    }
    ++changed;
    one.Append(wire);
    other.Append(one.TakeWire());
    heard += one.TakePlain();
  }
  WEFT_CHECK(std::string_view(kSaid).starts_with(heard));
  return 0;
}
