#include "mpi_hybrid/p2p/greeting/greeting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

namespace weft::mpi {
namespace {

struct Exchange {
  JobSecret secret = *JobSecret::FromHex("000102030405060708090a0b0c0d0e0f");
  Bond bond = Bond::Of(secret);
  ProcessName from{.job = bond.id, .rank = 3}, to{.job = {{7}}, .rank = 4};
  uint8_t challenge[Challenge::kLength];
  uint8_t hello[Hello::kLength];
  uint8_t answer[Answer::kLength];

  Exchange() {
    Challenge::Write(NewNonce(), to, challenge);
    Hello{.from = from, .to = to, .bond = bond.id, .window = 1 << 20}.Write(secret, challenge, hello);
    Answer{.window = 1 << 21, .kind = Answer::Kind::kWelcome}.Write(secret, challenge, hello, answer);
  }
};

TEST(GreetingTest, EachSideReadsWhatTheOtherSaid) {
  Exchange exchange;
  EXPECT_EQ(Challenge::Read(exchange.challenge), exchange.to);
  const auto hello = Hello::Read(exchange.hello);
  ASSERT_TRUE(hello.has_value());
  EXPECT_TRUE(Hello::IsProven(exchange.secret, exchange.challenge, exchange.hello));
  EXPECT_EQ(hello->from, exchange.from);
  EXPECT_EQ(hello->to, exchange.to);
  EXPECT_EQ(hello->bond, exchange.bond.id);
  EXPECT_EQ(hello->window, 1u << 20);
  const auto answer = Answer::Read(exchange.secret, exchange.challenge, exchange.hello, exchange.answer);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->window, 1u << 21);
  EXPECT_EQ(answer->kind, Answer::Kind::kWelcome);
}

TEST(GreetingTest, DamageAnywhereIsRefused) {
  Exchange exchange;
  for (size_t i = 0; i < Hello::kLength; ++i) {
    exchange.hello[i] ^= 0x40;
    EXPECT_FALSE(Hello::IsProven(exchange.secret, exchange.challenge, exchange.hello)) << i;
    EXPECT_EQ(Hello::Read(exchange.hello).has_value(), i >= 8) << i;
    exchange.hello[i] ^= 0x40;
  }
  for (size_t i = 0; i < Answer::kLength; ++i) {
    exchange.answer[i] ^= 0x40;
    EXPECT_FALSE(Answer::Read(exchange.secret, exchange.challenge, exchange.hello, exchange.answer).has_value()) << i;
    exchange.answer[i] ^= 0x40;
  }
  for (size_t i = 0; i < 8; ++i) {
    exchange.challenge[i] ^= 0x40;
    EXPECT_EQ(Challenge::Read(exchange.challenge), std::nullopt) << i;
    EXPECT_EQ(Challenge::BeginsOne(std::span(exchange.challenge).first(i)), true) << i;
    EXPECT_EQ(Challenge::BeginsOne(std::span(exchange.challenge).first(i + 1)), false) << i;
    exchange.challenge[i] ^= 0x40;
  }
}

TEST(GreetingTest, TheSecretIsNotInIt) {
  Exchange exchange;
  const uint8_t part[] = {4, 5, 6, 7};
  for (const auto& bytes : {std::span<const uint8_t>(exchange.hello), std::span<const uint8_t>(exchange.answer)}) {
    EXPECT_EQ(std::search(bytes.begin(), bytes.end(), std::begin(part), std::end(part)), bytes.end());
  }
}

TEST(GreetingTest, WhatWasOverheardProvesNothingToAnotherChallenge) {
  Exchange overheard, now;
  EXPECT_FALSE(Hello::IsProven(now.secret, now.challenge, overheard.hello));
  EXPECT_FALSE(Answer::Read(now.secret, now.challenge, now.hello, overheard.answer).has_value());
  EXPECT_FALSE(Answer::Read(now.secret, overheard.challenge, now.hello, overheard.answer).has_value());
}

TEST(GreetingTest, WhoDoesNotKnowTheSecretProvesNothing) {
  Exchange exchange;
  const JobSecret other = *JobSecret::FromHex("000102030405060708090a0b0c0d0e0e");
  EXPECT_FALSE(Hello::IsProven(other, exchange.challenge, exchange.hello));
  EXPECT_FALSE(Answer::Read(other, exchange.challenge, exchange.hello, exchange.answer).has_value());
}

}  // namespace
}  // namespace weft::mpi
