#include "impi/wire/command.h"

#include <gtest/gtest.h>

#include <string_view>

#include "base/hex.h"

namespace weft::impi {
namespace {

Bytes FromHex(std::string_view digits) {
  Bytes bytes(digits.size() / 2);
  EXPECT_TRUE(ParseHex(digits, bytes));
  return bytes;
}

// As LAM/MPI 7.1.4 and a server wrote them on the wire.
constexpr std::string_view kAuth = "415554480000000400000002", kImpi = "494d50490000000400000001",
                           kVersion = "434f4c4c0000000c000010000000000000000000",
                           kVersions = "434f4c4c00000018000010000000000300000000000000000000000000000000", kDone = "444f4e4500000000";

TEST(ImpiCommand, IsWhatOthersWrite) {
  CommandReader reader(100);
  reader.Append(FromHex(kAuth));
  EXPECT_EQ(reader.NextCommand(), Command::OfNumber(CommandCode::kAuth, 2));
  reader.Append(FromHex(kImpi));
  EXPECT_EQ(reader.NextCommand(), Command::OfNumber(CommandCode::kImpi, 1));
  reader.Append(FromHex(kDone));
  EXPECT_EQ(reader.NextCommand(), (Command{CommandCode::kDone, {}}));
  EXPECT_EQ(reader.NextCommand(), std::nullopt);
  EXPECT_EQ(HexOf(Command::OfNumber(CommandCode::kAuth, 2).Serialize()), kAuth);
  EXPECT_EQ(HexOf(AuthChoice{.which = 1, .length = 0}.Serialize()), "0000000100000000");
  EXPECT_EQ(HexOf(SerializeKey(5678)), "000000000000162e");
  EXPECT_EQ(ParseKey(SerializeKey(~uint64_t{5})), ~uint64_t{5});
}

TEST(ImpiCommand, CollectedValuesHaveAMaskOnTheWayBackOnly) {
  CommandReader reader(100);
  reader.Append(FromHex(kVersion));
  const auto from_client = Collected::FromClient(*reader.NextCommand());
  EXPECT_EQ(from_client, (Collected{Label::kVersion, 0, Bytes(8)}));
  EXPECT_EQ(HexOf(from_client->ToServer().Serialize()), kVersion);
  reader.Append(FromHex(kVersions));
  const auto from_server = Collected::FromServer(*reader.NextCommand());
  EXPECT_EQ(from_server, (Collected{Label::kVersion, 3, Bytes(16)}));
  EXPECT_EQ(HexOf(from_server->ToClient().Serialize()), kVersions);
  EXPECT_EQ(Collected::FromClient({CommandCode::kColl, Bytes(3)}), std::nullopt);
  EXPECT_EQ(Collected::FromServer({CommandCode::kColl, Bytes(7)}), std::nullopt);
}

TEST(ImpiCommand, ComesOutTheSameWhereverTheStreamIsCut) {
  const Bytes stream = FromHex(std::string(kAuth) + std::string(kVersions) + std::string(kDone));
  for (size_t step = 1; step <= stream.size(); ++step) {
    CommandReader reader(24);
    std::vector<Command> commands;
    for (size_t at = 0; at < stream.size(); at += step) {
      reader.Append(ByteSpan(stream).subspan(at, std::min(step, stream.size() - at)));
      while (auto command = reader.NextCommand()) commands.push_back(*command);
    }
    ASSERT_EQ(commands.size(), 3u) << step;
    EXPECT_EQ(commands[1].payload.size(), 24u);
    EXPECT_EQ(reader.waiting(), 0u);
  }
}

TEST(ImpiCommand, WordsBetweenCommandsHaveNoHeader) {
  CommandReader reader(24);
  reader.Append(FromHex("000000000000"));
  EXPECT_EQ(reader.NextWords(kKeySize), std::nullopt);
  reader.Append(FromHex(std::string("162e") + std::string(kImpi)));
  EXPECT_EQ(ParseKey(*reader.NextWords(kKeySize)), 5678u);
  EXPECT_EQ(reader.NextCommand(), Command::OfNumber(CommandCode::kImpi, 1));
}

TEST(ImpiCommand, RefusesALengthBeforeItsBytesCome) {
  for (const auto& [header, length] : {std::pair{"434f4c4c00000019", 25}, std::pair{"434f4c4cffffffff", -1}, std::pair{"434f4c4c7fffffff", INT32_MAX}}) {
    CommandReader reader(24);
    reader.Append(FromHex(header));
    EXPECT_EQ(reader.NextCommand(), std::nullopt);
    EXPECT_EQ(reader.refused_length(), length);
    reader.Append(FromHex(kDone));
    EXPECT_EQ(reader.NextCommand(), std::nullopt) << "nothing that follows can be understood";
  }
}

TEST(ImpiCommand, HasANameAlsoWhenItIsNotKnown) {
  EXPECT_EQ(NameOf(CommandCode::kFini), "FINI");
  EXPECT_EQ(NameOf(static_cast<CommandCode>(0x12345678)), "0x12345678");
  EXPECT_EQ(NameOf(Label::kHostHighWater), "IMPI_H_HIWATER");
  EXPECT_EQ(NameOf(static_cast<Label>(0x1001)), "label 0x1001");
}

}  // namespace
}  // namespace weft::impi
