#include "pmi/process_mapping.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace weft::pmi {
namespace {

constexpr int kMost = 1 << 20;  // nodes, or ranks on one

}  // namespace

ProcessMapping ProcessMapping::Of(std::span<const int> node_of_rank) {
  ProcessMapping mapping;
  std::vector<Block>& blocks = mapping.blocks_;
  for (const int node : node_of_rank) {  // first a block for each run of ranks on one node
    if (blocks.empty() || blocks.back().first != node) blocks.push_back({node, 1, 0});
    ++blocks.back().ranks_on_each;
    ++mapping.round_;
  }
  size_t last = 0;  // then runs of as many ranks on nodes in a row are one
  for (size_t i = 1; i < blocks.size(); ++i) {
    Block& before = blocks[last];
    if (blocks[i].first == before.first + before.nodes && blocks[i].ranks_on_each == before.ranks_on_each)
      ++before.nodes;
    else
      blocks[++last] = blocks[i];
  }
  blocks.resize(last + 1);
  return mapping;
}

std::string ProcessMapping::ToString() const {
  std::string text = "(vector";
  for (const Block& block : blocks_) {
    text += ",(" + std::to_string(block.first) + "," + std::to_string(block.nodes) + "," +
            std::to_string(block.ranks_on_each) + ")";
  }
  return text + ")";
}

std::optional<ProcessMapping> ProcessMapping::Parse(const std::string& text) {
  static constexpr char kStart[] = "(vector,";
  if (text.compare(0, sizeof(kStart) - 1, kStart) != 0) return std::nullopt;
  ProcessMapping mapping;
  const char* at = text.c_str() + sizeof(kStart) - 1;
  Block block;
  int length;
  while (std::sscanf(at, " (%d,%d,%d)%n", &block.first, &block.nodes, &block.ranks_on_each, &length) == 3) {
    if (block.first < 0 || block.first > kMost || block.nodes <= 0 || block.nodes > kMost || block.ranks_on_each <= 0)
      return std::nullopt;
    if (block.ranks_on_each > (kMost - mapping.round_) / block.nodes) return std::nullopt;
    mapping.round_ += block.nodes * block.ranks_on_each;
    mapping.blocks_.push_back(block);
    at += length;
    if (*at == ',') ++at;
  }
  if (std::strcmp(at, ")") != 0 || mapping.blocks_.empty()) return std::nullopt;
  return mapping;
}

int ProcessMapping::NodeOf(int rank) const {
  int left = rank % round_;
  for (const Block& block : blocks_) {
    if (left < block.nodes * block.ranks_on_each) return block.first + left / block.ranks_on_each;
    left -= block.nodes * block.ranks_on_each;
  }
  return 0;  // not reached: the blocks place `round_` ranks
}

int ProcessMapping::RanksOnNodeOf(int rank, int size) const {
  const int node = NodeOf(rank);
  int count = 0;
  for (int other = 0; other < size; ++other) count += NodeOf(other) == node;
  return count;
}

bool ProcessMapping::is_one_node() const {
  return std::all_of(blocks_.begin(), blocks_.end(),
                     [&](const Block& block) { return block.nodes == 1 && block.first == blocks_.front().first; });
}

}  // namespace weft::pmi
