#ifndef IMPI_TESTER_PAGE_H_
#define IMPI_TESTER_PAGE_H_

#include <string>
#include <string_view>

#include "impi/tester/board.h"
#include "impi/tester/http.h"

namespace weft::impi::tester {

// What -serve answers. Everything is below /SECRET/, so that other pages in the user's browser, and other users of the
// machine, can neither see nor start anything.
//
//   GET /SECRET/        the page, with page.js and page.css beside it
//   GET /SECRET/state   the board, as JSON
//   POST /SECRET/start  starts all scripts; 202, or 409 while they run
struct PageAnswer {
  std::string text;     // of HTTP
  bool starts = false;  // the scripts
};
PageAnswer AnswerFor(const HttpRequest& request, std::string_view secret, const Board& board);

}  // namespace weft::impi::tester

#endif  // IMPI_TESTER_PAGE_H_
