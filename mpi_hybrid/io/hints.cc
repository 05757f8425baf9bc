#include "mpi_hybrid/io/hints.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace weft::mpi::io {
namespace {

constexpr int64_t kLeastBuffer = 4096, kMostBuffer = int64_t{1} << 30;
constexpr int64_t kMostNodes = 1 << 20;

void TakeNumber(const Info& info, const char* key, int64_t least, int64_t most, int64_t* number) {
  const std::optional<std::string> text = info.Get(key);
  if (!text) return;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < least) return;
  *number = value > most ? most : value;
}

void TakeChoice(const Info& info, const char* key, Hints::Choice* choice) {
  const std::optional<std::string> text = info.Get(key);
  if (text == "enable") *choice = Hints::Choice::kEnable;
  if (text == "disable") *choice = Hints::Choice::kDisable;
  if (text == "automatic") *choice = Hints::Choice::kAutomatic;
}

// A list of the words of MPI 4.0 section 14.2.8, of which those about the order of accesses are used. Any other text is ignored.
void TakeStyle(const std::string& style, Hints* hints) {
  constexpr std::string_view kWords[] = {"read_once", "write_once", "read_mostly", "write_mostly", "sequential", "reverse_sequential", "random"};
  if (style.size() >= sizeof hints->access_style) return;
  Hints::Access access = Hints::Access::kUnknown;
  for (std::string_view rest = style;;) {
    const size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    if (std::find(std::begin(kWords), std::end(kWords), word) == std::end(kWords)) return;
    if (word == "random") access = Hints::Access::kRandom;
    if (word == "sequential" && access != Hints::Access::kRandom) access = Hints::Access::kSequential;
    if (comma == rest.npos) break;
    rest.remove_prefix(comma + 1);
  }
  hints->access = access;
  style.copy(hints->access_style, style.size());
  hints->access_style[style.size()] = 0;
}

const char* Text(Hints::Choice choice) {
  switch (choice) {
    case Hints::Choice::kEnable:
      return "enable";
    case Hints::Choice::kDisable:
      return "disable";
    default:
      return "automatic";
  }
}

}  // namespace

void Hints::Take(const Info& info) {
  TakeNumber(info, "cb_nodes", 1, kMostNodes, &cb_nodes);
  TakeNumber(info, "cb_buffer_size", kLeastBuffer, kMostBuffer, &cb_buffer_size);
  TakeNumber(info, "ind_rd_buffer_size", kLeastBuffer, kMostBuffer, &ind_rd_buffer_size);
  TakeNumber(info, "ind_wr_buffer_size", kLeastBuffer, kMostBuffer, &ind_wr_buffer_size);
  // MPI's own name for both directions; ROMIO's, which say more, go before it.
  const std::optional<std::string> collective = info.Get("collective_buffering");
  if (collective == "true") cb_read = cb_write = Choice::kEnable;
  if (collective == "false") cb_read = cb_write = Choice::kDisable;
  TakeChoice(info, "romio_cb_read", &cb_read);
  TakeChoice(info, "romio_cb_write", &cb_write);
  TakeChoice(info, "romio_ds_read", &ds_read);
  TakeChoice(info, "romio_ds_write", &ds_write);
  if (const std::optional<std::string> style = info.Get("access_style")) TakeStyle(*style, this);
}

void Hints::Clamp() {
  cb_nodes = std::clamp<int64_t>(cb_nodes, 0, kMostNodes);
  for (int64_t* bytes : {&cb_buffer_size, &ind_rd_buffer_size, &ind_wr_buffer_size}) *bytes = std::clamp(*bytes, kLeastBuffer, kMostBuffer);
  for (Choice* choice : {&cb_read, &cb_write, &ds_read, &ds_write}) {
    if (*choice > Choice::kDisable) *choice = Choice::kAutomatic;
  }
  // The text is what counts, and `access` follows from it.
  access_style[sizeof access_style - 1] = 0;
  const std::string style = access_style;
  access = Access::kUnknown;
  access_style[0] = 0;
  TakeStyle(style, this);
}

void Hints::Tell(int aggregators, Info* info) const {
  if (aggregators > 0) info->Set("cb_nodes", std::to_string(aggregators));
  info->Set("cb_buffer_size", std::to_string(cb_buffer_size));
  info->Set("romio_cb_read", Text(cb_read));
  info->Set("romio_cb_write", Text(cb_write));
  info->Set("collective_buffering", cb_read == Choice::kDisable && cb_write == Choice::kDisable ? "false" : "true");
  info->Set("ind_rd_buffer_size", std::to_string(ind_rd_buffer_size));
  info->Set("ind_wr_buffer_size", std::to_string(ind_wr_buffer_size));
  info->Set("romio_ds_read", Text(ds_read));
  info->Set("romio_ds_write", Text(ds_write));
  if (access_style[0] != 0) info->Set("access_style", access_style);
}

}  // namespace weft::mpi::io
