#include "mpi_hybrid/p2p/testing/toy/toy_network.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <span>

#include "base/descriptor.h"

namespace weft::mpi::testing {

class ToyTransport final : public Transport, EventLoop::Handler {
 public:
  ToyTransport(ToyNetwork& network, Engine& engine, EventLoop& loop)
      : network_(network), engine_(engine), loop_(loop), self_(engine.self()) {
    network_.members_[static_cast<size_t>(self_)] = this;
  }
  ~ToyTransport() override {
    Close();
    network_.members_[static_cast<size_t>(self_)] = nullptr;
  }

  Error Start() override {
    doorbell_ = Descriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    registration_ = {loop_, doorbell_.get(), EPOLLIN, *this};
    return {};
  }
  bool Reaches(ProcessId process) const override { return network_.reaches_(self_, process); }

  void Connect(Link& link) override {
    const ProcessId peer = link.peer();
    if (stopping_ || network_.wires_.contains(NameOf(peer))) return;
    if (MemberAt(peer) == nullptr) return engine_.OnGone(peer, /*left=*/false);
    for (End& end : network_.wires_[NameOf(peer)].ends) end.looks = Random(3);
    Ring(peer);
  }

  bool Flush(Link& link) override {
    Wire* wire = WireTo(link.peer());
    if (wire == nullptr) {
      Connect(link);
      return false;
    }
    return Mine(*wire, link.peer()).open && Write(link, *wire);
  }

  size_t WriteAtOnce(Link& link, std::span<const iovec> pieces, size_t total, uint32_t /*flow*/) override {
    Wire& wire = *WireTo(link.peer());
    std::vector<uint8_t> bytes = Gather(pieces, total);
    if (network_.carries_ == ToyNetwork::Carries::kWholeFrames) {
      if (bytes.size() != total || Random(4) == 0) return 0;
    } else {
      bytes.resize(std::min(bytes.size(), Random(3) == 0 ? Random(static_cast<unsigned>(total)) : total));
    }
    const size_t room = RoomTo(wire, link.peer());
    if (room == 0) return 0;
    if (network_.carries_ == ToyNetwork::Carries::kBytes) bytes.resize(std::min(bytes.size(), room));
    const size_t written = bytes.size();
    if (written != 0) Put(wire, link.peer(), std::move(bytes));
    return written;
  }

  bool Poll() override {
    bool moved = false;
    for (const ProcessId peer : Peers()) {
      Wire& wire = *WireTo(peer);
      End& mine = Mine(wire, peer);
      if (mine.closed) continue;
      if (!mine.open) {
        if (mine.looks != 0) {
          --mine.looks;
          continue;
        }
        mine.open = moved = true;
        engine_.LinkTo(peer).Open(engine_.limits().window);
      }
      Link& link = engine_.LinkTo(peer);
      moved |= Read(link, wire);
      if (!mine.closed && link.has_output()) moved |= Write(link, wire);
    }
    return moved;
  }

  // Looks in vain pass by looking: while there is something to look for nobody sleeps.
  bool Arm() override {
    for (const ProcessId peer : Peers()) {
      Wire& wire = *WireTo(peer);
      const End &mine = Mine(wire, peer), &theirs = Theirs(wire, peer);
      if (mine.closed) continue;
      if (!mine.open || !mine.pieces.empty() || theirs.output_ended) return false;
      if (engine_.LinkTo(peer).has_output() && RoomTo(wire, peer) != 0) return false;
    }
    return true;
  }
  void OnReady(uint32_t) override {
    uint64_t rings;
    [[maybe_unused]] const ssize_t got = read(doorbell_.get(), &rings, sizeof(rings));
    Poll();
  }
  std::optional<EventLoop::Clock::time_point> deadline() const override { return std::nullopt; }
  void OnTime(EventLoop::Clock::time_point) override {}

  void StopConnecting() override { stopping_ = true; }
  void EndOutput(Link& link) override {
    Wire* wire = WireTo(link.peer());
    if (wire == nullptr) return;
    Mine(*wire, link.peer()).output_ended = true;
    Ring(link.peer());
  }
  bool HasConnections() const override {
    const std::vector<ProcessId> peers = Peers();
    return std::any_of(peers.begin(), peers.end(), [&](ProcessId peer) {
      const End& mine = Mine(*WireTo(peer), peer);
      return mine.open && !mine.closed;
    });
  }
  Error Listen() override { return {}; }
  bool IsConnected(const Link& link) const override {
    Wire* wire = WireTo(link.peer());
    return wire != nullptr && !Mine(*wire, link.peer()).closed;
  }
  void Drop(const Link& link) override {
    if (WireTo(link.peer()) != nullptr) CloseEnd(link.peer());
  }
  void Close() override {
    for (const ProcessId peer : Peers()) CloseEnd(peer);
  }

 private:
  using Wire = ToyNetwork::Wire;
  using End = ToyNetwork::End;
  using Name = std::pair<ProcessId, ProcessId>;

  Name NameOf(ProcessId peer) const { return std::minmax(self_, peer); }
  Wire* WireTo(ProcessId peer) const {
    const auto found = network_.wires_.find(NameOf(peer));
    return found == network_.wires_.end() ? nullptr : &found->second;
  }
  End& Mine(Wire& wire, ProcessId peer) const { return wire.ends[self_ < peer ? 0 : 1]; }
  End& Theirs(Wire& wire, ProcessId peer) const { return wire.ends[self_ < peer ? 1 : 0]; }
  ToyTransport* MemberAt(ProcessId process) const { return network_.members_[static_cast<size_t>(process)]; }
  // To whom there are wires, in the order of this look.
  std::vector<ProcessId> Peers() const {
    std::vector<ProcessId> peers;
    for (const auto& [name, wire] : network_.wires_) {
      if (name.first == self_) peers.push_back(name.second);
      if (name.second == self_) peers.push_back(name.first);
    }
    std::shuffle(peers.begin(), peers.end(), network_.random_);
    return peers;
  }
  // 0 to `below` - 1; 0 for 0.
  unsigned Random(unsigned below) const { return below == 0 ? 0 : static_cast<unsigned>(network_.random_() % below); }

  void Ring(ProcessId peer) {
    const ToyTransport* member = MemberAt(peer);
    if (member == nullptr || !member->doorbell_) return;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(member->doorbell_.get(), &one, sizeof(one));
  }

  size_t RoomTo(Wire& wire, ProcessId peer) const {
    const End &mine = Mine(wire, peer), &theirs = Theirs(wire, peer);
    if (mine.output_ended) return 0;
    return theirs.bytes < ToyNetwork::kRoom ? ToyNetwork::kRoom - theirs.bytes : 0;
  }
  void Put(Wire& wire, ProcessId peer, std::vector<uint8_t> bytes) {
    End& theirs = Theirs(wire, peer);
    theirs.bytes += bytes.size();
    theirs.pieces.push_back({.bytes = std::move(bytes), .looks = Random(4)});
    ++network_.pieces_carried_;
    Ring(peer);
  }
  static std::vector<uint8_t> Gather(std::span<const iovec> pieces, size_t most) {
    std::vector<uint8_t> bytes;
    for (const iovec& piece : pieces) {
      const auto* data = static_cast<const uint8_t*>(piece.iov_base);
      bytes.insert(bytes.end(), data, data + std::min(piece.iov_len, most - bytes.size()));
    }
    return bytes;
  }

  bool Write(Link& link, Wire& wire) {
    bool moved = false;
    while (link.has_output()) {
      const size_t room = RoomTo(wire, link.peer());
      if (room == 0) return moved;
      moved = true;
      iovec pieces[5];
      if (network_.carries_ == ToyNetwork::Carries::kBytes) {
        const size_t count = link.PrepareWrite(pieces);
        std::vector<uint8_t> bytes = Gather({pieces, count}, std::min<size_t>(room, 1 + Random(1U << Random(20))));
        const size_t written = bytes.size();
        Put(wire, link.peer(), std::move(bytes));
        link.Written(written);
        continue;
      }
      std::vector<uint8_t> frame;
      for (size_t left = link.left_of_frame(); left != 0;) {
        const size_t count = link.PrepareWrite(pieces, /*most_frames=*/1);
        const std::vector<uint8_t> part = Gather({pieces, count}, left);
        frame.insert(frame.end(), part.begin(), part.end());
        left -= part.size();
        if (left == 0) Put(wire, link.peer(), std::move(frame));  // before its send completes
        link.Written(part.size());
      }
    }
    return moved;
  }

  bool Read(Link& link, Wire& wire) {
    End& mine = Mine(wire, link.peer());
    bool moved = false;
    while (!mine.pieces.empty()) {
      ToyNetwork::Piece& piece = mine.pieces.front();
      if (piece.looks != 0) {
        --piece.looks;
        return moved;
      }
      moved = true;
      while (piece.read < piece.bytes.size()) {
        uint8_t staging[97];
        iovec places[5];
        const size_t count = link.PrepareRead(places, staging);
        size_t read = 0;
        for (size_t i = 0; i < count; ++i) {
          const size_t part = std::min(places[i].iov_len, piece.bytes.size() - piece.read);
          std::copy_n(piece.bytes.data() + piece.read, part, static_cast<uint8_t*>(places[i].iov_base));
          piece.read += part;
          read += part;
        }
        EXPECT_TRUE(link.ReadDone(read, staging));
      }
      mine.bytes -= piece.bytes.size();
      mine.pieces.pop_front();
      Ring(link.peer());  // there is room
    }
    if (!Theirs(wire, link.peer()).output_ended) return moved;
    CloseEnd(link.peer());
    engine_.OnGone(link.peer(), /*left=*/false);
    return true;
  }

  void CloseEnd(ProcessId peer) {
    End& mine = Mine(*WireTo(peer), peer);
    mine.closed = mine.output_ended = true;
    mine.pieces.clear();
    mine.bytes = 0;
    Ring(peer);
  }

  ToyNetwork& network_;
  Engine& engine_;
  EventLoop& loop_;
  const ProcessId self_;
  Descriptor doorbell_;
  EventLoop::Registration registration_;
  bool stopping_ = false;
};

std::unique_ptr<Transport> ToyNetwork::Make(Engine& engine, EventLoop& loop) {
  return std::make_unique<ToyTransport>(*this, engine, loop);
}

bool ToyNetwork::IsQuiet() {
  return std::all_of(wires_.begin(), wires_.end(), [](const auto& entry) {
    return std::all_of(std::begin(entry.second.ends), std::end(entry.second.ends),
                       [](const End& end) { return end.closed || (end.open && end.pieces.empty()); });
  });
}

}  // namespace weft::mpi::testing
