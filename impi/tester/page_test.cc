#include "impi/tester/page.h"

#include <gtest/gtest.h>

namespace weft::impi::tester {
namespace {

constexpr const char* kSecret = "0123456789abcdef";

Board TheBoard() {
  Script script;
  script.file = "a.script";
  script.clause = "2.3.4";
  script.about = "It works.";
  script.steps.resize(3);
  return Board({script});
}

TEST(HttpReader, TakesARequestCutAnywhere) {
  const std::string text = "POST /x/start HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    HttpReader reader;
    EXPECT_TRUE(reader.Append(text.substr(0, cut)));
    EXPECT_EQ(reader.request().has_value(), cut == text.size());
    EXPECT_TRUE(reader.Append(text.substr(cut)));
    ASSERT_TRUE(reader.request());
    EXPECT_EQ(reader.request()->method, "POST");
    EXPECT_EQ(reader.request()->target, "/x/start");
  }
}

TEST(HttpReader, RefusesWhatIsNoRequest) {
  for (const char* text :
       {"\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET / FTP/1.1\r\n\r\n", "GET x HTTP/1.1\r\n\r\n",
        "GET  HTTP/1.1\r\n\r\n", " / HTTP/1.1\r\n\r\n", "GET /\x01 HTTP/1.1\r\n\r\n", "GET / x HTTP/1.1\r\n\r\n"}) {
    EXPECT_FALSE(HttpReader().Append(text)) << text;
  }
}

TEST(HttpReader, IsBounded) {
  HttpReader reader;
  EXPECT_TRUE(reader.Append(std::string(HttpReader::kMost - 1, 'x')));
  EXPECT_FALSE(reader.Append("x"));
}

TEST(HttpAnswer, SaysHowLongItIsAndWhatThePageMayDo) {
  const std::string answer = HttpAnswer(200, "text/plain", "four");
  EXPECT_TRUE(
      answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 4\r\n"));
  EXPECT_NE(answer.find("default-src 'none'"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("\r\n\r\nfour"));
}

TEST(Page, IsBelowTheSecretOnly) {
  Board board = TheBoard();
  const auto status = [&](const char* method, const std::string& target) {
    const PageAnswer answer = AnswerFor({method, target}, kSecret, board);
    return answer.text.substr(9, 3) + (answer.starts ? " starts" : "");
  };
  const std::string folder = std::string("/") + kSecret + "/";
  EXPECT_EQ(status("GET", folder), "200");
  EXPECT_EQ(status("GET", folder + "state"), "200");
  EXPECT_EQ(status("POST", folder + "start"), "202 starts");
  EXPECT_EQ(status("GET", folder + "start"), "405");
  EXPECT_EQ(status("POST", folder + "state"), "405");
  EXPECT_EQ(status("GET", folder + "../state"), "404");
  for (const char* target : {"/", "/state", "/0123456789abcdeX/state", "/0123456789abcdef"})
    EXPECT_EQ(status("GET", target), "404") << target;
  EXPECT_EQ(status("POST", "/start"), "404");
  board.running = true;
  EXPECT_EQ(status("POST", folder + "start"), "409");
}

TEST(Board, IsJsonWithoutAnythingOfAPeerUnescaped) {
  Board board = TheBoard();
  EXPECT_EQ(JsonOf(board),
            "{\"running\":false,\"runs\":0,\"entries\":[{\"file\":\"a.script\",\"clause\":\"2.3.4\",\"about\":\"It "
            "works.\",\"steps\":3,\"done\":0,\"state\":\"waits\",\"milliseconds\":0}]}");
  board.entries[0].state = Board::State::kFailed;
  board.entries[0].verdict = {
      .passed = false, .failure = {7, "hear a", "no"}, .trace = {"\"\\\n", "\xff</script>"}, .output = "", .took = {}};
  EXPECT_NE(JsonOf(board).find(
                "\"line\":7,\"step\":\"hear "
                "a\",\"reason\":\"no\",\"trace\":[\"\\u0022\\u005c\\u000a\",\"\\u00ff</script>\"],\"output\":\"\""),
            std::string::npos);
  board.Clear();
  EXPECT_NE(JsonOf(board).find("\"waits\""), std::string::npos);
}

}  // namespace
}  // namespace weft::impi::tester
