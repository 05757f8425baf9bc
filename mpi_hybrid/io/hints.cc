#include "mpi_hybrid/io/hints.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

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
  // A list; what concerns the order of accesses is used.
  if (const std::optional<std::string> style = info.Get("access_style")) {
    if (style->find("random") != std::string::npos) {
      access = Access::kRandom;
    } else if (style->find("sequential") != std::string::npos) {
      access = Access::kSequential;
    }
  }
}

void Hints::Clamp() {
  cb_nodes = std::clamp<int64_t>(cb_nodes, 0, kMostNodes);
  for (int64_t* bytes : {&cb_buffer_size, &ind_rd_buffer_size, &ind_wr_buffer_size}) *bytes = std::clamp(*bytes, kLeastBuffer, kMostBuffer);
  for (Choice* choice : {&cb_read, &cb_write, &ds_read, &ds_write}) {
    if (*choice > Choice::kDisable) *choice = Choice::kAutomatic;
  }
  if (access > Access::kRandom) access = Access::kUnknown;
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
  if (access == Access::kRandom) info->Set("access_style", "random");
  if (access == Access::kSequential) info->Set("access_style", "sequential");
}

}  // namespace weft::mpi::io
