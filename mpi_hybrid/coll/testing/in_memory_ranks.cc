#include "mpi_hybrid/coll/testing/in_memory_ranks.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace weft::mpi {

InMemoryRanks::InMemoryRanks(std::mt19937& random, int size, int remote_size)
    : random_(random), size_(size), inter_(remote_size > 0), processes_(static_cast<size_t>(size + remote_size)) {}

int InMemoryRanks::PeerOf(int process, const Step& step) const {
  if (!inter_) return step.peer;
  const bool first_group = process < size_;
  return step.peer + (first_group == step.local ? 0 : size_);
}

std::string InMemoryRanks::Run() {
  for (Process& process : processes_) {
    process.next = 0;
    process.pending = 0;
  }
  pairs_.clear();
  while (failure_.empty()) {
    std::vector<int> order(processes_.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    bool moved = false;
    for (int process : order) moved |= StartRound(process);
    std::vector<Pair*> pairs;
    for (auto& [key, pair] : pairs_) pairs.push_back(&pair);
    std::shuffle(pairs.begin(), pairs.end(), random_);
    for (Pair* pair : pairs) moved |= Deliver(*pair);
    if (!moved) break;
  }
  if (!failure_.empty()) return failure_;
  for (size_t i = 0; i < processes_.size(); ++i) {
    if (!Finished(static_cast<int>(i)))
      return "process " + std::to_string(i) + " stands at step " + std::to_string(processes_[i].next);
  }
  for (const auto& [key, pair] : pairs_) {
    if (!pair.sends.empty() || !pair.receives.empty()) return "a message is left over";
  }
  return "";
}

bool InMemoryRanks::Finished(int index) const {
  const Process& process = processes_[static_cast<size_t>(index)];
  return process.pending == 0 && process.next == process.schedule.steps().size();
}

bool InMemoryRanks::StartRound(int index) {
  Process& process = processes_[static_cast<size_t>(index)];
  const std::vector<Step>& steps = process.schedule.steps();
  if (process.pending != 0 || process.next == steps.size() || random_() % 3 == 0)
    return process.pending == 0 && process.next < steps.size();
  while (process.next < steps.size()) {
    const Step& step = steps[process.next++];
    switch (step.kind) {
      case Step::Kind::kEndOfRound:
        return true;
      case Step::Kind::kSend: {
        Posted posted{index, &step, {}, random_() % 2 == 0};
        if (posted.copied) {
          posted.data.resize(static_cast<size_t>(step.count * step.type->size));
          TypeCursor cursor(step.from, step.count, *step.type);
          Pack(cursor, posted.data);
        }
        pairs_[{index, PeerOf(index, step), step.local, step.tag}].sends.push_back(std::move(posted));
        ++process.pending;
        break;
      }
      case Step::Kind::kReceive:
        pairs_[{PeerOf(index, step), index, step.local, step.tag}].receives.push_back({index, &step, {}, false});
        ++process.pending;
        break;
      case Step::Kind::kReduce:
        step.op->Apply(step.from, step.to, step.count, *step.type);
        break;
      case Step::Kind::kCopy:
        if (Error error = CopyTyped(step.from, step.count, *step.type, step.to, step.to_count, *step.to_type);
            !error.ok())
          failure_ = error.message();
        break;
    }
  }
  return true;
}

bool InMemoryRanks::Deliver(Pair& pair) {
  if (pair.sends.empty() || pair.receives.empty()) return false;
  if (random_() % 2 == 0) return true;
  const Posted send = std::move(pair.sends.front());
  const Posted receive = std::move(pair.receives.front());
  pair.sends.pop_front();
  pair.receives.pop_front();
  const Step &from = *send.step, &to = *receive.step;
  const MPI_Aint sent = from.count * from.type->size, expected = to.count * to.type->size;
  if (sent > expected || (to.exact && sent != expected)) {
    failure_ = "process " + std::to_string(receive.process) + " expects " + std::to_string(expected) +
               " bytes of process " + std::to_string(send.process) + ", which sends " + std::to_string(sent);
    return true;
  }
  Error error = send.copied ? CopyTyped(send.data.data(), sent, *Datatype::Find(MPI_BYTE), to.to, to.count, *to.type)
                            : CopyTyped(from.from, from.count, *from.type, to.to, to.count, *to.type);
  if (!error.ok()) failure_ = error.message();
  --processes_[static_cast<size_t>(send.process)].pending;
  --processes_[static_cast<size_t>(receive.process)].pending;
  return true;
}

}  // namespace weft::mpi
