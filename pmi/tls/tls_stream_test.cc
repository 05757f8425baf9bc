#include "pmi/tls/tls_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace weft::pmi {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<TlsStream> Server(const std::string& secret = "open sesame") { return TlsStream::Make(TlsStream::Side::kServer, secret).value(); }
std::unique_ptr<TlsStream> Client(const std::string& secret = "open sesame") { return TlsStream::Make(TlsStream::Side::kClient, secret).value(); }

// Carries what both have to say, in pieces of `most` bytes, until neither has.
void Carry(TlsStream& one, TlsStream& other, size_t most = SIZE_MAX) {
  for (bool moved = true; moved;) {
    moved = false;
    for (auto [from, to] : {std::pair{&one, &other}, {&other, &one}}) {
      const std::string wire = from->TakeWire();
      for (size_t at = 0; at < wire.size(); at += std::min(most, wire.size() - at)) to->Append(wire.substr(at, most));
      moved |= !wire.empty();
    }
  }
}

TEST(TlsStream, CarriesWhatIsSaidBothWaysCutAnywhere) {
  for (const size_t most : {size_t{1}, size_t{7}, size_t{100}, SIZE_MAX}) {
    const auto server = Server(), client = Client();
    client->Write("cmd=initack pmiid=0\n");  // before it is ready
    const std::string much(100'000, 'x');
    server->Write(much);
    Carry(*client, *server, most);
    EXPECT_TRUE(server->ready());
    EXPECT_TRUE(client->ready());
    EXPECT_EQ(server->TakePlain(), "cmd=initack pmiid=0\n");
    EXPECT_EQ(client->TakePlain(), much);
    server->Write("and more");
    Carry(*client, *server, most);
    EXPECT_EQ(client->TakePlain(), "and more");
    EXPECT_EQ(server->error() + client->error(), "");
  }
}

TEST(TlsStream, NothingIsReadableOnTheWire) {
  const auto server = Server(), client = Client();
  client->Write("cmd=put kvsname=a key=b value=c\n");
  std::string all;
  for (int i = 0; i < 4; ++i) {
    const std::string from_client = client->TakeWire(), from_server = server->TakeWire();
    server->Append(from_client);
    client->Append(from_server);
    all += from_client + from_server;
  }
  EXPECT_TRUE(server->ready());
  EXPECT_THAT(all, Not(HasSubstr("kvsname")));
}

TEST(TlsStream, WrongSecretsAreNoticedByBothEnds) {
  const auto server = Server("one"), client = Client("another");
  client->Write("secret words");
  Carry(*client, *server);
  EXPECT_FALSE(server->ready());
  EXPECT_FALSE(client->ready());
  EXPECT_THAT(server->error(), HasSubstr("did not prove by TLS that it knows the secret"));
  EXPECT_THAT(client->error(), HasSubstr("did not prove by TLS that it knows the secret"));
  EXPECT_EQ(server->TakePlain(), "");
}

TEST(TlsStream, WhatIsNoTlsIsNamed) {
  for (const std::string& words : {std::string("cmd=init pmi_version=2 pmi_subversion=0\n"), std::string("GET / HTTP/1.1\r\n\r\n"), std::string(300, '\0'),
                                   std::string("\x16\x03\x01\xff\xff", 5) + std::string(70'000, 'x'), std::string("\x15\x03\x03\x00\x02\x02\x28", 7)}) {
    const auto server = Server();
    server->Append(words);
    EXPECT_THAT(server->error(), HasSubstr("did not prove by TLS")) << words.substr(0, 10);
    EXPECT_EQ(server->TakePlain(), "");
    const auto client = Client();
    client->Append(words);
    EXPECT_THAT(client->error(), HasSubstr("did not prove by TLS")) << words.substr(0, 10);
  }
}

TEST(TlsStream, ARecordThatWasChangedOnTheWayEndsIt) {
  std::minstd_rand random(1);
  for (int run = 0; run < 50; ++run) {
    const auto server = Server(), client = Client();
    Carry(*client, *server);
    client->Write(std::string(200, 'y'));
    std::string wire = client->TakeWire();
    wire[random() % wire.size()] ^= static_cast<char>(1 << random() % 8);
    server->Append(wire);
    server->Append(std::string(70'000, 'z'));  // a changed length may want more
    EXPECT_NE(server->error(), "") << run;
    EXPECT_EQ(server->TakePlain(), "") << run;
  }
}

TEST(TlsStream, AnOversizedRecordEndsIt) {
  const auto server = Server(), client = Client();
  Carry(*client, *server);
  server->Append(std::string("\x17\x03\x03\x7f\xff", 5) + std::string(0x7fff, 'x'));
  EXPECT_THAT(server->error(), HasSubstr("broke TLS: "));
}

TEST(TlsStream, OldVersionsAreRefused) {
  // A ClientHello of TLS 1.2 that offers one cipher suite, and nothing of 1.3.
  const std::string body = std::string("\x03\x03", 2) + std::string(32, 'r') + std::string("\x00\x00\x02\x00\x9c\x01\x00", 7);
  const std::string hello = std::string("\x01\x00\x00", 3) + static_cast<char>(body.size()) + body;
  const auto server = Server();
  server->Append(std::string("\x16\x03\x01\x00", 4) + static_cast<char>(hello.size()) + hello);
  EXPECT_THAT(server->error(), HasSubstr("did not prove by TLS"));
}

}  // namespace
}  // namespace weft::pmi
