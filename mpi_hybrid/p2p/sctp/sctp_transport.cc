#include "mpi_hybrid/p2p/sctp/sctp_transport.h"

#include <errno.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/file_limit.h"
#include "base/log.h"
#include "mpi_hybrid/core/job.h"
#include "pmi/client.h"

namespace weft::mpi {
namespace {

constexpr char kKey[] = "weft-sctp";
constexpr size_t kStaging = 64 * 1024;
constexpr size_t kDirectConnections = 4;  // up to so many are read without waiting for the bell
constexpr int kBacklog = 128;             // the porter empties it

// Whether an association failed because nobody is there, or another process (ESRCH).
bool IsNobody(int error) {
  return error == ESRCH || error == ECONNREFUSED || error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
}

}  // namespace

SctpTransport::SctpTransport(Job& job, Engine& engine, EventLoop& loop, transport::Network& network,
                             transport::sctp::Sctp& sctp, const transport::sctp::Settings& settings)
    : job_(job),
      engine_(engine),
      loop_(loop),
      network_(network),
      sctp_(sctp),
      settings_(settings),
      staging_(kStaging) {}

SctpTransport::~SctpTransport() {
  if (porter_ != nullptr) porter_->Close();
}

Error SctpTransport::Start() {
  return job_.size == 1 ? Error() : Listen();
}

Error SctpTransport::Listen() {
  if (porter_ != nullptr) return {};
  if (settings_.local_addresses.empty()) {
    for (const std::string& host : job_.hosts) {
      const auto address = transport::SocketAddress::Parse(host, 0);
      if (!address)
        return Error(MPI_ERR_OTHER, "the address of this host, '" + host + "', is not a numeric one (WEFT_MPI_HOST)");
      settings_.local_addresses.push_back(*address);
    }
  }
  bell_ = std::make_shared<Bell>();
  if (bell_->fd() < 0) return Error(MPI_ERR_OTHER, "cannot create a descriptor for SCTP: " + DescribeShortage(errno));
  auto listener = sctp_.Listen(settings_.local_addresses[0], kBacklog, settings_);
  if (!listener.ok()) {
    std::string where;
    for (const auto& address : settings_.local_addresses) where += (where.empty() ? "" : ", ") + address.host();
    return Error(MPI_ERR_OTHER, "cannot listen for SCTP on " + where +
                                    " (WEFT_MPI_HOST, WEFT_SCTP_ADDRESSES): " + std::strerror(listener.error()));
  }
  card_ = {.port = (*listener)->LocalAddresses().at(0).port(),
           .udp_port = sctp_.udp_port(),
           .nonce = NewNonce(),
           .addresses = settings_.local_addresses};
  Challenge::Write(card_.nonce, job_.processes.own_name(), challenge_);
  porter_ = std::make_shared<Porter>(bell_, std::move(listener).value());
  porter_->Watch(porter_);
  registration_ = {loop_, bell_->fd(), EPOLLIN, *this};
  return job_.Publish(kKey, card_.ToString(job_.pmi->max_value_length() - 1));
}

std::unique_ptr<SctpConnection> SctpTransport::NewConnection(std::unique_ptr<transport::sctp::Association> association,
                                                             bool up) {
  const SctpConnection::Setting setting = {.owner = *this,
                                           .processes = job_.processes,
                                           .window = engine_.limits().window,
                                           .challenge = challenge_,
                                           .staging = staging_};
  auto made = std::make_unique<SctpConnection>(setting, bell_, next_number_++, std::move(association), up);
  by_number_[made->number()] = made.get();
  return made;
}

SctpConnection* SctpTransport::Find(uint64_t number) const {
  const auto found = by_number_.find(number);
  return found == by_number_.end() ? nullptr : found->second;
}

// --- associations that are there ---

bool SctpTransport::Poll() {
  if (porter_ == nullptr) return false;
  network_.DriveInline();
  const bool came = sctp_.Poll(nullptr);
  bool moved = HearBell();
  turns_now_.swap(turns_);
  for (const uint64_t number : turns_now_) moved |= ReadAndWrite(number);
  turns_now_.clear();
  if (by_process_.size() > kDirectConnections) return moved;
  for (size_t i = 0; i < by_process_.size();) {
    const ProcessId process = by_process_[i];
    SctpConnection& connection = *ConnectionOf(process);
    const uint64_t number = connection.number();
    connection.Lend();
    bool here = connection.Read();
    if ((came || here) && Find(number) != nullptr) here |= connection.WriteOn();
    moved |= Settle(number, here);
    if (i < by_process_.size() && by_process_[i] == process) ++i;
  }
  return moved;
}

bool SctpTransport::HearBell() {
  if (!bell_->rang()) return false;
  bool moved = false;
  for (const uint64_t number : bell_->Take()) {
    if (number == 0) {
      moved |= TakeGuests();
    } else if (SctpConnection* connection = Find(number)) {
      connection->OnRing();
      moved |= ReadAndWrite(number);
    }
  }
  return moved;
}

bool SctpTransport::ReadAndWrite(uint64_t number) {
  SctpConnection* connection = Find(number);
  if (connection == nullptr) return false;
  bool moved = connection->Read();
  if (Find(number) != connection) return true;
  moved |= connection->WriteOn();
  if (by_process_.size() > kDirectConnections || connection->link() == nullptr) connection->Listen();
  return Settle(number, moved);
}

// The last of what is done with a connection: after it there may be none.
bool SctpTransport::Settle(uint64_t number, bool moved) {
  SctpConnection* connection = Find(number);
  if (connection == nullptr || !connection->end()) return moved;
  const int error = *connection->end();
  const auto guest = std::find_if(guests_.begin(), guests_.end(),
                                  [&](const Guest& one) { return one.connection.get() == connection; });
  if (guest != guests_.end()) {
    by_number_.erase(number);
    guests_.erase(guest);
    return moved;
  }
  const ProcessId process = connection->link()->peer();
  const bool open = connection->is_open();
  Drop(process);
  if (TraceEnabled())
    Trace(Format("mpi: association with %s ended (%s)", job_.processes.Describe(process).c_str(),
                 error == 0 ? "in order" : std::strerror(error)));
  if (open) {
    engine_.OnGone(process, /*left=*/false);
  } else {
    OnEnd(process, error);
  }
  return true;
}

bool SctpTransport::Flush(Link& link) {
  SctpConnection* connection = ConnectionOf(link.peer());
  if (connection == nullptr) {
    Connect(link);
    return false;
  }
  const uint64_t number = connection->number();
  return Settle(number, connection->Write());
}

size_t SctpTransport::WriteAtOnce(Link& link, std::span<const iovec> pieces, size_t /*total*/, uint32_t flow) {
  return ConnectionOf(link.peer())->WriteAtOnce(pieces, flow);
}

bool SctpTransport::Arm() {
  if (porter_ == nullptr) return true;
  if (by_process_.size() <= kDirectConnections) {
    for (const ProcessId process : by_process_) ConnectionOf(process)->Listen();
  }
  network_.EndDrive();
  return turns_.empty() && !bell_->rang();
}

void SctpTransport::OnReady(uint32_t) { HearBell(); }

// --- connecting ---

std::optional<Card> SctpTransport::CardOf(ProcessId process, Error* error) {
  std::string published;
  *error = job_.Lookup(kKey, process, &published);
  if (!error->ok()) return std::nullopt;
  auto card = Card::Parse(published);
  if (!card)
    *error =
        Error(MPI_ERR_OTHER, "'" + published + "' is not an SCTP address; WEFT_MPI_LLP must be the same at all ranks");
  return card;
}

void SctpTransport::Connect(Link& link) {
  const ProcessId process = link.peer();
  if (stopping_ || porter_ == nullptr || ConnectionOf(process) != nullptr || calls_.contains(process)) return;
  Error error;
  auto card = CardOf(process, &error);
  if (!card) {
    LogWarning("cannot connect to " + job_.processes.Describe(process) + ": " + error.message());
    engine_.OnGone(process, /*left=*/false);
    return;
  }
  TakeGuests();
  if (ConnectionOf(process) != nullptr || link.is_gone()) return;
  calls_.emplace(process, Call{.card = std::move(*card), .since = Clock::now(), .retry_at = std::nullopt});
  Try(process);
}

SctpConnection& SctpTransport::Install(ProcessId process, std::unique_ptr<SctpConnection> connection) {
  const size_t at = static_cast<size_t>(process);
  if (at >= connections_.size()) connections_.resize(at + 1);
  connections_[at] = std::move(connection);
  by_process_.push_back(process);
  if (by_process_.size() == kDirectConnections + 1) {  // from now on nobody looks without having heard the bell
    for (const ProcessId one : by_process_) ConnectionOf(one)->Listen();
  }
  return *connections_[at];
}

bool SctpTransport::IsConnected(const Link& link) const {
  return ConnectionOf(link.peer()) != nullptr || calls_.contains(link.peer());
}

void SctpTransport::Drop(const Link& link) {
  calls_.erase(link.peer());
  if (ConnectionOf(link.peer()) != nullptr) Drop(link.peer());
}

void SctpTransport::Drop(ProcessId process) {
  const std::unique_ptr<SctpConnection> gone = std::exchange(connections_[static_cast<size_t>(process)], nullptr);
  by_number_.erase(gone->number());
  std::erase(by_process_, process);
}

void SctpTransport::Try(ProcessId process) {
  Call& call = calls_.at(process);
  ++call.attempts;
  call.retry_at.reset();
  auto association = sctp_.Connect(call.card.peer(), /*local_port=*/0, settings_);
  if (!association.ok()) {
    if (IsNobody(association.error())) return OnEnd(process, association.error());
    return TryAgain(process, DescribeShortage(association.error()));
  }
  SctpConnection& connection = Install(process, NewConnection(std::move(association).value(), /*up=*/false));
  connection.SetLink(engine_.LinkTo(process), call.card.nonce);
}

void SctpTransport::TryAgain(ProcessId process, const std::string& why) {
  const auto call = calls_.find(process);
  if (stopping_ || call == calls_.end()) {
    calls_.erase(process);
    return;
  }
  const auto now = Clock::now();
  if (now - call->second.since < kPatience || call->second.attempts < kFewestAttempts) {
    call->second.retry_at = now + kPause;
    return;
  }
  calls_.erase(call);
  engine_.OnUnreachable(
      process,
      Error(MPI_ERR_OTHER, "cannot connect to " + job_.processes.Describe(process) + " over SCTP: " + why));
}

// The association with `process` came to nothing.
void SctpTransport::OnEnd(ProcessId process, int error) {
  if (!IsNobody(error) || stopping_)
    return TryAgain(process, error == 0 ? "it closes each association" : std::strerror(error));
  calls_.erase(process);
  engine_.OnGone(process, /*left=*/false);
}

bool SctpTransport::TakeGuests() {
  bool moved = false;
  for (auto& association : porter_->Take()) {
    const auto now = Clock::now();
    if (guests_.size() >= kMostStrangers) {
      if (now - guests_.front().since < kShortest) continue;  // destroying it aborts it: one of the job tries again
      by_number_.erase(guests_.front().connection->number());
      guests_.pop_front();
    }
    auto connection = NewConnection(std::move(association), /*up=*/true);
    const uint64_t number = connection->number();
    guests_.push_back({std::move(connection), now});
    moved |= ReadAndWrite(number);
  }
  return moved;
}

bool SctpTransport::OnProven(SctpConnection& connection, ProcessId process, const Nonce& nonce) {
  const auto guest = std::find_if(guests_.begin(), guests_.end(),
                                  [&](const Guest& one) { return one.connection.get() == &connection; });
  const auto turn_away = [&](const char* why) {
    connection.Abort(why);
    by_number_.erase(connection.number());
    guests_.erase(guest);
    return false;
  };
  Link& link = engine_.LinkTo(process);
  if (link.is_gone()) return turn_away("gone");
  const SctpConnection* ours = ConnectionOf(process);
  const bool ours_stays =
      ours != nullptr && (ours->is_open() || (ours->has_greeted() &&
                                              job_.processes.own_name() < job_.processes.NameOf(process)));
  if (ours_stays) return turn_away("there is another association");
  Error error;
  const auto call = calls_.find(process);
  const auto card = call != calls_.end() ? std::optional(call->second.card) : CardOf(process, &error);
  if (!card && job_.processes.IsOfWorld(process)) return turn_away("not in the job's directory");
  if (ours != nullptr) Drop(process);
  std::unique_ptr<SctpConnection> taken = std::move(guest->connection);
  guests_.erase(guest);
  Install(process, std::move(taken)).SetLink(link, card ? card->nonce : nonce);
  return true;
}

std::optional<SctpTransport::Clock::time_point> SctpTransport::deadline() const {
  std::optional<Clock::time_point> first;
  for (const auto& [process, call] : calls_) {
    if (call.retry_at && (!first || *call.retry_at < *first)) first = call.retry_at;
  }
  return first;
}

void SctpTransport::OnTime(Clock::time_point now) {
  std::vector<ProcessId> due;  // each attempt may change calls_
  for (const auto& [process, call] : calls_) {
    if (call.retry_at && now >= *call.retry_at) due.push_back(process);
  }
  for (const ProcessId process : due) {
    if (calls_.contains(process) && ConnectionOf(process) == nullptr) Try(process);
  }
}

// --- the end ---

void SctpTransport::EndOutput(Link& link) {
  if (SctpConnection* connection = ConnectionOf(link.peer())) connection->EndOutput();
}

bool SctpTransport::HasConnections() const {
  return std::any_of(by_process_.begin(), by_process_.end(),
                     [this](ProcessId process) { return ConnectionOf(process)->is_open(); });
}

void SctpTransport::Close() {
  if (porter_ == nullptr) return;
  porter_->Close();
  registration_.End();
  calls_.clear();
  guests_.clear();
  // What was written goes out by itself.
  for (const ProcessId process : by_process_) ConnectionOf(process)->EndOutput();
  by_process_.clear();
  by_number_.clear();
  connections_.clear();
}

}  // namespace weft::mpi
