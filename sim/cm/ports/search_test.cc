#include "sim/cm/ports/search.h"

#include <gtest/gtest.h>

#include "sim/cm/ports/wish.h"

namespace weft::sim {
namespace {

constexpr uint32_t kOurs = 0x123401, kTheirs = 0x567802, kOurSends = 0x111111, kTheirSends = 0x222222;

transport::SocketAddress At(const char* host) { return *transport::SocketAddress::Parse(host, 0); }

Search LooksFor(uint32_t peer, const char* local = "192.0.2.1", const char* remote = "192.0.2.2") {
  Search search{.number = kOurs};
  search.choice.number = peer;
  search.choice.address = At(remote);
  search.choice.local = At(local);
  search.choice.receive_number = kTheirSends;
  return search;
}

Wish Asks() { return {.to = kOurs, .from = kTheirs, .service = Service::kReliable, .receive_number = kOurSends, .send_number = kTheirSends}; }

TEST(Wish, SaysWhatWasSaid) {
  const Wish wish{.to = 0xffff01, .from = 2, .service = Service::kXrcReceive, .receive_number = kMostSequence, .send_number = 7};
  EXPECT_EQ(Wish::Parse(wish.Serialize()), wish);
}

TEST(Wish, OtherPrivateDataIsNone) {
  std::vector<uint8_t> bytes = Asks().Serialize();
  bytes.push_back(0);
  EXPECT_FALSE(Wish::Parse(bytes));
  bytes.resize(Wish::kLength - 1);
  EXPECT_FALSE(Wish::Parse(bytes));
  bytes = Asks().Serialize();
  bytes[0] ^= 1;
  EXPECT_FALSE(Wish::Parse(bytes));
  EXPECT_FALSE(Wish::Parse({}));
}

TEST(Search, FitsItsPeerAtItsAddressAlone) {
  const Search search = LooksFor(kTheirs);
  EXPECT_TRUE(search.Fits(Asks(), At("192.0.2.2")));
  EXPECT_FALSE(search.Fits(Asks(), At("192.0.2.3")));
  EXPECT_FALSE(LooksFor(kTheirs + 1).Fits(Asks(), At("192.0.2.2")));
}

TEST(Search, OnItsOwnHostAnyOwnAddressFits) {
  Search search = LooksFor(kTheirs, "127.0.0.1", "127.0.0.1");
  EXPECT_FALSE(search.Fits(Asks(), At("127.0.0.2")));
  search.choice.own_host = true;
  EXPECT_TRUE(search.Fits(Asks(), At("127.0.0.2")));
  EXPECT_FALSE(search.Fits(Asks(), At("240.0.0.1"))) << "no host has that one";
}

TEST(Search, OfXrcTheOneThatSendsFitsTheOneThatReceives) {
  Search search = LooksFor(kTheirs);
  search.choice.service = Service::kXrcSend;
  Wish wish = Asks();
  for (const Service service : {Service::kReliable, Service::kUnreliable, Service::kXrcSend, Service::kXrcReceive}) {
    wish.service = service;
    EXPECT_EQ(search.Fits(wish, At("192.0.2.2")), service == Service::kXrcReceive);
  }
}

TEST(Search, IsProvenByTheNumbersOfOneDirection) {
  Search search = LooksFor(kTheirs);
  EXPECT_TRUE(search.Proves(Asks()));
  Wish other = Asks();
  other.send_number ^= 1;
  EXPECT_FALSE(search.Proves(other)) << "what it sends with is not known before it is in RTS";
  search.send_number = kOurSends;
  EXPECT_TRUE(search.Proves(other));
  other.receive_number ^= 1;
  EXPECT_FALSE(search.Proves(other));
}

TEST(Search, TheSmallerNumberOpensAndOfEqualOnesTheSmallerAddress) {
  EXPECT_TRUE(LooksFor(kOurs + 1).opens());
  EXPECT_FALSE(LooksFor(kOurs - 1).opens());
  EXPECT_NE(LooksFor(kOurs, "192.0.2.1", "192.0.2.2").opens(), LooksFor(kOurs, "192.0.2.2", "192.0.2.1").opens());
}

}  // namespace
}  // namespace weft::sim
