#include "mpi_hybrid/p2p/sctp/card.h"

#include <algorithm>
#include <charconv>

namespace weft::mpi {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

// The text up to the next '/', which is taken off; nullopt: there is none.
std::optional<std::string_view> TakePart(std::string_view& text) {
  const size_t end = text.find('/');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end + 1);
  return part;
}

bool ReadPort(std::optional<std::string_view> text, uint16_t* port) {
  if (!text || text->empty()) return false;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *port);
  return error == std::errc() && end == text->data() + text->size();
}

bool ReadNonce(std::optional<std::string_view> text, Nonce* nonce) {
  if (!text || text->size() != 2 * nonce->size()) return false;
  for (size_t i = 0; i < nonce->size(); ++i) {
    const auto [end, error] = std::from_chars(text->data() + 2 * i, text->data() + 2 * i + 2, (*nonce)[i], 16);
    if (error != std::errc() || end != text->data() + 2 * i + 2) return false;
  }
  return true;
}

}  // namespace

std::string Card::ToString(size_t most) const {
  std::string text = std::to_string(port) + '/' + std::to_string(udp_port) + '/';
  for (const uint8_t byte : nonce) text += {kDigits[byte >> 4], kDigits[byte & 15]};
  char before = '/';
  for (const transport::SocketAddress& address : addresses) {
    const std::string host = address.host();
    if (before == ',' && text.size() + 1 + host.size() > most) break;
    text += before + host;
    before = ',';
  }
  return text;
}

std::optional<Card> Card::Parse(std::string_view text) {
  Card card;
  if (!ReadPort(TakePart(text), &card.port) || card.port == 0 || !ReadPort(TakePart(text), &card.udp_port) ||
      !ReadNonce(TakePart(text), &card.nonce)) {
    return std::nullopt;
  }
  while (true) {
    const size_t end = std::min(text.find(','), text.size());
    const auto address = transport::SocketAddress::Parse(text.substr(0, end), 0);
    if (!address) return std::nullopt;
    card.addresses.push_back(*address);
    if (end == text.size()) return card;
    text.remove_prefix(end + 1);
  }
}

transport::sctp::Peer Card::peer() const {
  transport::sctp::Peer peer{.addresses = addresses, .udp_port = udp_port};
  for (transport::SocketAddress& address : peer.addresses) address.set_port(port);
  return peer;
}

}  // namespace weft::mpi
