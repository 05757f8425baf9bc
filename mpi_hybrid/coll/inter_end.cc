#include "mpi_hybrid/coll/inter_end.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/hex.h"
#include "mpi_hybrid/coll/collectives.h"
#include "mpi_hybrid/coll/make_comm_agreement.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/p2p/message.h"

namespace weft::mpi {
namespace {

constexpr char kDerived[] = "weft group";
constexpr size_t kMostDescription = 64 << 20;  // bytes that the other leader may say of its group
constexpr size_t kMostAtOnce = 48 << 10;       // bytes, for which broadcasts choose the binomial tree (tuning.cc)
constexpr uint64_t kGivenUp = UINT64_MAX;      // in the place of a number that the other leader waits for

// What is said of a group is text, a line for each thing:
//
//   process JOB RANK              in order of rank
//   card NUMBER KEY VALUE         where the process of that rank in the group is
//   seal BOND SEALED              the new secret, for those who know that bond
//
// in hexadecimal digits where it is bytes.
constexpr std::string_view kProcess = "process", kCard = "card", kSeal = "seal";

const Datatype& Bytes() { return *Datatype::Find(MPI_BYTE); }
ProcessTable& Processes() { return ThisJob().processes; }

// The words of a line; the last has what is left.
std::vector<std::string_view> Words(std::string_view line, size_t most) {
  std::vector<std::string_view> words;
  while (words.size() + 1 < most && line.find(' ') != std::string_view::npos) {
    words.push_back(line.substr(0, line.find(' ')));
    line.remove_prefix(words.back().size() + 1);
  }
  words.push_back(line);
  return words;
}

template <typename Visit>
Error ForEachLine(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    WEFT_MPI_TRY(visit(line));
  }
  return {};
}

Error NotAGroup(std::string_view line) {
  return Error(MPI_ERR_OTHER, "the other leader sent '" + std::string(line.substr(0, 80)) + "' to describe its group");
}

std::optional<int> ToInt(std::string_view digits) {
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<JobId> ToJob(std::string_view digits) {
  JobId job;
  if (!ParseHex(digits, job.bytes)) return std::nullopt;
  return job;
}

std::string LineOf(const ProcessName& name) {
  return std::string(kProcess) + " " + HexOf(name.job.bytes) + " " + std::to_string(name.rank) + "\n";
}

Error ReadNames(const std::string& text, std::vector<ProcessName>* names) {
  return ForEachLine(text, [&](std::string_view line) -> Error {
    const auto words = Words(line, 3);
    if (words.size() != 3 || words[0] != kProcess) return NotAGroup(line);
    const auto job = ToJob(words[1]);
    const auto rank = ToInt(words[2]);
    if (!job || !rank || *rank < 0) return NotAGroup(line);
    names->push_back({.job = *job, .rank = *rank});
    return {};
  });
}

bool AreOfOneJob(const std::vector<ProcessName>& names, const JobId& job) {
  return std::all_of(names.begin(), names.end(), [&](const ProcessName& name) { return name.job == job; });
}

std::vector<ProcessName> NamesOf(const Group& group) {
  std::vector<ProcessName> names;
  for (const ProcessId process : group.members) names.push_back(Processes().NameOf(process));
  return names;
}

}  // namespace

// Both directions at once, so that neither leader waits for the other to receive.
Error InterEnd::Swap(const void* mine, size_t mine_bytes, void* theirs, size_t theirs_bytes) {
  Request* receive = nullptr;
  WEFT_MPI_TRY(StartReceive(theirs, static_cast<MPI_Aint>(theirs_bytes), Bytes(), remote_leader_, tag_, *peer_,
                            Channel::kCollective, &receive));
  Error sent = Send(mine, static_cast<MPI_Aint>(mine_bytes), Bytes(), remote_leader_, tag_, *peer_,
                    SendMode::kStandard, Channel::kCollective);
  Error received = Finish({}, receive);
  return sent.ok() ? std::move(received) : std::move(sent);
}

Error InterEnd::SwapWord(uint64_t mine, uint64_t* theirs) {
  Error met = Swap(&mine, sizeof mine, theirs, sizeof *theirs);
  if (met.ok() && *theirs == kGivenUp) met = Error(MPI_ERR_OTHER, "the other leader had an error");
  if (!met.ok() || mine == kGivenUp) talking_ = false;
  return met;
}

Error InterEnd::Swap(const std::string& mine, std::string* theirs, size_t most) {
  uint64_t other = 0;
  WEFT_MPI_TRY(SwapWord(mine.size(), &other));
  if (other > most) {
    talking_ = false;  // whatever it sends is not for us
    return Error(MPI_ERR_OTHER, "the other leader announced " + std::to_string(other) + " bytes to describe its group");
  }
  theirs->resize(other);
  Error met = Swap(mine.data(), mine.size(), theirs->data(), theirs->size());
  if (!met.ok()) talking_ = false;
  return met;
}

void InterEnd::GiveUp() {
  uint64_t ignored = 0;
  if (talking_) (void)SwapWord(kGivenUp, &ignored);
}

// With a tag of its own: whoever did not get one part does not take the next for it, nor count collectives otherwise than the
// rest of the group.
Error InterEnd::Tell(void* data, size_t bytes, uint32_t tag) {
  if (tell_) return tell_(data, bytes);
  const uint32_t next = std::exchange(local_.next_collective, tag);
  Error error = Broadcast(data, static_cast<MPI_Aint>(bytes), Bytes(), leader_, local_);
  local_.next_collective = next;
  return error;
}

// In parts that go down a tree: to whom one does not come, none comes behind it in the tree.
Error InterEnd::TellText(std::string* text) {
  for (size_t done = 0; done < text->size(); done += kMostAtOnce)
    WEFT_MPI_TRY(Tell(text->data() + done, std::min(kMostAtOnce, text->size() - done), members_tag_));
  return {};
}

Error InterEnd::LearnMembers(const Error& refusal, Ref<Group>* remote) {
  Error met = refusal;
  std::string description;
  if (is_leader() && met.ok()) {
    talking_ = true;
    met = TalkToLeader(&description);
    if (!met.ok()) GiveUp();
  }
  uint64_t header[2] = {static_cast<uint64_t>(met.mpi_class()), description.size()};
  Error told = Tell(header, sizeof header, members_tag_);
  if (!met.ok()) return met;
  WEFT_MPI_TRY(std::move(told));
  if (header[0] != MPI_SUCCESS) {
    return Error(static_cast<int>(header[0]),
                 "rank " + std::to_string(leader_) + ", the local leader, had an error of this class");
  }
  description.resize(header[1]);
  WEFT_MPI_TRY(TellText(&description));
  std::vector<ProcessId> members;
  WEFT_MPI_TRY(Learn(description, &members));
  *remote = MakeGroup(std::move(members));
  return {};
}

// What there is to be told of the remote group.
Error InterEnd::TalkToLeader(std::string* description) {
  const std::vector<ProcessName> ours = NamesOf(*local_.local);
  std::string names;
  for (const ProcessName& name : ours) names += LineOf(name);
  WEFT_MPI_TRY(Swap(names, description, kMostDescription));
  std::vector<ProcessName> theirs;
  WEFT_MPI_TRY(ReadNames(*description, &theirs));
  if (theirs.empty()) return NotAGroup("nothing");
  const JobId job = Processes().own_name().job;
  if (AreOfOneJob(ours, job) && AreOfOneJob(theirs, job)) return {};

  std::string cards, their_cards;
  WEFT_MPI_TRY(Describe(theirs, &cards));
  WEFT_MPI_TRY(Swap(cards, &their_cards, kMostDescription));
  const ProcessId leader = peer_->peer(remote_leader_);
  JobSecret secret = JobSecret::Random();
  WEFT_MPI_TRY(FindCommonBond(leader, &secret));
  std::array<Nonce, 2> nonces = {NewNonce(), Nonce{}};
  std::string their_nonce;
  WEFT_MPI_TRY(Swap(std::string(nonces[0].begin(), nonces[0].end()), &their_nonce, sizeof(Nonce)));
  if (their_nonce.size() != sizeof(Nonce)) return NotAGroup("a nonce of " + std::to_string(their_nonce.size()) + " bytes");
  std::copy(their_nonce.begin(), their_nonce.end(), nonces[1].begin());
  // In the same order at both.
  if (Processes().NameOf(leader) < Processes().own_name()) std::swap(nonces[0], nonces[1]);
  std::array<uint8_t, 2 * sizeof(Nonce)> said;
  std::copy(nonces[1].begin(), nonces[1].end(), std::copy(nonces[0].begin(), nonces[0].end(), said.begin()));
  *description += their_cards + Seals(secret.Derive(kDerived, said));
  return {};
}

// The same at both: of the bonds that each of them knows the lowest.
Error InterEnd::FindCommonBond(ProcessId leader, JobSecret* secret) {
  std::string mine, theirs;
  std::map<JobId, JobSecret> common;
  const std::vector<Bond> bonds = Processes().BondsOf(leader);
  for (const Bond& bond : bonds) mine += HexOf(bond.id.bytes) + "\n";
  WEFT_MPI_TRY(Swap(mine, &theirs, kMostDescription));
  WEFT_MPI_TRY(ForEachLine(theirs, [&](std::string_view line) -> Error {
    const auto id = ToJob(line);
    if (!id) return NotAGroup(line);
    for (const Bond& bond : bonds) {
      if (bond.id == *id) common.emplace(bond.id, bond.secret);
    }
    return {};
  }));
  if (common.empty()) return Error(MPI_ERR_OTHER, "the leaders of the groups share no bond");
  *secret = common.begin()->second;
  return {};
}

// Where those of our group are whom not all of theirs know, being of the same job.
Error InterEnd::Describe(const std::vector<ProcessName>& theirs, std::string* cards) {
  const std::vector<ProcessId>& members = local_.local->members;
  for (size_t rank = 0; rank < members.size(); ++rank) {
    if (AreOfOneJob(theirs, Processes().NameOf(members[rank]).job)) continue;
    Cards own;
    WEFT_MPI_TRY(ThisJob().CardsOf(members[rank], &own));
    for (const auto& [key, value] : own)
      *cards += std::string(kCard) + " " + std::to_string(rank) + " " + key + " " + value + "\n";
  }
  return {};
}

std::string InterEnd::Seals(const JobSecret& secret) const {
  std::map<JobId, JobSecret> bonds;
  for (const ProcessId process : local_.local->members) {
    for (const Bond& bond : Processes().BondsOf(process)) bonds.emplace(bond.id, bond.secret);
  }
  std::string seals;
  for (const auto& [id, known] : bonds)
    seals += std::string(kSeal) + " " + HexOf(id.bytes) + " " + HexOf(known.Seal(secret)) + "\n";
  return seals;
}

Error InterEnd::Learn(const std::string& description, std::vector<ProcessId>* members) const {
  std::vector<ProcessName> names;
  std::map<size_t, Cards> cards;
  std::optional<Bond> bond;
  const std::vector<Bond> ours = Processes().BondsOf(local_.peer(leader_));
  WEFT_MPI_TRY(ForEachLine(description, [&](std::string_view line) -> Error {
    if (line.starts_with(kProcess)) return ReadNames(std::string(line), &names);
    const auto words = Words(line, line.starts_with(kCard) ? 4 : 3);
    if (words.size() == 4 && words[0] == kCard) {
      const auto rank = ToInt(words[1]);
      if (!rank || *rank < 0) return NotAGroup(line);
      cards[static_cast<size_t>(*rank)].emplace(words[2], words[3]);
      return {};
    }
    JobSecret::Sealed sealed;
    if (words.size() != 3 || words[0] != kSeal || !ParseHex(words[2], sealed)) return NotAGroup(line);
    for (const Bond& known : ours) {
      if (ToJob(words[1]) != known.id) continue;
      if (const auto secret = known.secret.Unseal(sealed)) bond = Bond::Of(*secret);
    }
    return {};
  }));
  for (size_t rank = 0; rank < names.size(); ++rank) {
    auto process = Processes().Find(names[rank]);
    if (!process && !bond) return Error(MPI_ERR_OTHER, names[rank].ToString() + " is not known, and there is no bond with it");
    if (!process) {
      process = Processes().Add(names[rank], *bond, std::move(cards[rank]));
    } else if (bond) {
      Processes().AddBond(*process, *bond);
    }
    members->push_back(*process);
  }
  return {};
}

// In one word: the context, and above it a half of the identity.
Error InterEnd::LearnContext(ContextId context, uint64_t own_identity, ContextId* remote, uint64_t* identity) {
  Error met;
  uint64_t theirs = kNoContext;
  const auto ours = static_cast<uint32_t>(own_identity >> 33);
  if (is_leader() && talking_) met = SwapWord(uint64_t{ours} << 32 | context, &theirs);
  // It may have come all the same; the group has one outcome.
  if (!met.ok()) theirs = kNoContext;
  Error told = Tell(&theirs, sizeof theirs, context_tag_);
  *remote = told.ok() ? static_cast<ContextId>(theirs) : kNoContext;
  const auto other = static_cast<uint32_t>(theirs >> 32);
  *identity = MixIdentity(std::min(ours, other), std::max(ours, other));
  return met.ok() ? std::move(told) : std::move(met);
}

}  // namespace weft::mpi
