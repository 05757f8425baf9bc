#ifndef MPI_HYBRID_P2P_SHM_SHM_CONNECTION_H_
#define MPI_HYBRID_P2P_SHM_SHM_CONNECTION_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "mpi_hybrid/p2p/engine/lane.h"
#include "mpi_hybrid/p2p/engine/link.h"
#include "mpi_hybrid/p2p/shm/cells.h"
#include "mpi_hybrid/p2p/shm/ring.h"

namespace weft::mpi::shm {

// Carries one link's frames through two rings. What it cannot write now it writes when it is asked again: Write.
//
// Long data that the peer may read where they lie are only named in the ring, and count as written when it has read
// them; nothing else of the link goes out meanwhile.
class ShmConnection final : public Lane {
 public:
  class Owner {
   public:
    // Wakes the peer, which sleeps.
    virtual void WakePeer(ShmConnection& connection) = 0;
    // Copies from the memory of the peer's process, as process_vm_readv(2) does. 0: that cannot be; -1: the process is
    // gone.
    virtual ssize_t ReadPeer(ShmConnection& connection, std::span<const iovec> to, uint64_t from, size_t bytes) = 0;
    // Whether long data may go through the rings, for which this process has to poll until they have gone. True: it is told of the end by Leave().
    virtual bool StaysForLongData() = 0;
    // It is of no more use (is_lost): whoever owns it drops it when nobody is in it any more.
    virtual void OnLost(ShmConnection& connection) = 0;

   protected:
    ~Owner() = default;
  };
  // What the two have in common. All of it outlives the connection.
  struct Memory {
    RingPage& out;
    RingPage& in;
    Cells& cells;             // this process's
    const uint8_t* its_area;  // with the cells of the peer
    const std::atomic<uint32_t>& its_attention;  // NodeSegment::attention_of
    const std::atomic<uint32_t>& its_stay;       // PlaceCard::stays
  };

  // `in_place_from`: see ShmTransport. `staging`: as Link::PrepareRead has it; anyone's between calls.
  ShmConnection(Owner& owner, Link& link, int place, const Memory& memory, size_t in_place_from,
                std::span<uint8_t> staging)
      : owner_(owner),
        link_(link),
        place_(place),
        cells_(memory.cells),
        its_cells_(memory.its_area + kPage),
        its_attention_(memory.its_attention),
        its_stay_(memory.its_stay),
        in_place_from_(in_place_from),
        staging_(staging),
        writer_(memory.out),
        reader_(memory.in, kCells, kCellBytes) {
    cell_of_.fill(kNoCell);
  }
  ~ShmConnection();
  ShmConnection(const ShmConnection&) = delete;
  ShmConnection& operator=(const ShmConnection&) = delete;

  Link& link() const { return link_; }
  int place() const { return place_; }  // the peer's

  // The reader's side may copy from the peer's process, until it finds that it cannot.
  void set_reads_memory() {
    reads_memory_ = true;
    reader_.set_reads_memory();
  }

  // What came, for a turn. Each may complete requests, which may call Write; whether anything moved.
  bool Read();
  // What the link has queued, as far as there is room.
  bool Write();
  // Has something that waits for the peer to read.
  bool is_blocked() const {
    return !lost_ && (memory_left_ != 0 || (link_.has_output() && !link_.is_gone() && !output_ended_));
  }
  // This process may not poll for a while: the peer is told where it finds long data that are partly written.
  void Leave();
  // Transport::WriteAtOnce.
  size_t WriteAtOnce(std::span<const iovec> pieces, size_t total);
  // A frame that a slot holds, or a slot and one cell. What is offered beside it is not shown.
  Room Open(size_t body_bytes) override;
  void Close(size_t body_bytes) override;
  size_t Peek(std::span<iovec, 2> pieces) override;
  void Taken() override;
  bool PeerStays() const override { return its_stay_.load(std::memory_order_relaxed) == 1; }
  bool Fetch(Payload& to, uint64_t offer, uint64_t bytes) override;
  // Nothing is written any more, and the peer is told so behind what was.
  void EndOutput();
  bool has_pending_end() const { return !lost_ && output_ended_ && !end_told_; }

  // Before a sleep, once the peer can see that this process is about to: whether there is nothing to do. The peer rings
  // when it wrote something, and when there is room again for what is blocked.
  bool Arm();
  // After it: the peer need not ring for room. Writes in between, of other threads, leave that as it was.
  void OnAwake() {
    if (std::exchange(waits_, false)) writer_.StopWaiting();
  }

  // The peer is gone: what it wrote before is read, the rest is over. `is_dead`: so is its process.
  void OnPeerGone(bool is_dead);
  bool is_lost() const { return lost_; }
  // Tells the peer that nobody reads any more.
  void SayGone() { reader_.set_gone(); }
  bool peer_reads_nothing() const { return writer_.reader_is_gone(); }
  // Whether the words of this process in the rings are what it wrote (shm/own_words.h).
  bool HasItsWords() const { return lost_ || (writer_.HasItsWords() && reader_.HasItsWords()); }

 private:
  static constexpr uint16_t kNoCell = UINT16_MAX;
  static constexpr size_t kMostHeld = 16;  // cells of one connection under way

  bool Take(const RingItem& item);
  bool TakeFromMemory(uint64_t from, uint64_t bytes);
  void Publish();
  bool Reclaim();
  void TakeCellsBack();
  bool MemoryWasRead();
  // One more slot, with a cell or not.
  bool CanPut() const { return writer_.has_room() && held_ < kMostHeld; }
  // One whose peer does not read leaves cells to the others; without any the slots themselves carry what they can.
  bool MayTakeCell() const { return held_ < kMostHeld && held_ < cells_.free(); }
  size_t Put(std::span<const iovec> pieces);
  size_t PutOffer(std::span<const uint8_t> data);
  size_t PutInPlace(std::span<const iovec> pieces);
  size_t PutInCell(std::span<const iovec> pieces, size_t skip, size_t first);
  void Publish(size_t first, BulkKind bulk, uint64_t where = 0, uint64_t length = 0);
  void TellEnd();
  void Lose();

  Owner& owner_;
  Link& link_;
  const int place_;
  Cells& cells_;
  const uint8_t* const its_cells_;
  const std::atomic<uint32_t>& its_attention_;
  const std::atomic<uint32_t>& its_stay_;
  const size_t in_place_from_;
  const std::span<uint8_t> staging_;
  RingWriter writer_;
  RingReader reader_;
  std::array<uint16_t, RingPage::kSlots> cell_of_{};  // by slot: the cell that it refers to
  uint32_t reclaimed_ = 0;   // slots whose cells are back
  uint32_t slot_ = 0;        // of reclaimed_
  uint32_t next_slot_ = 0;   // of writer_.written()
  size_t held_ = 0;          // cells
  size_t open_cell_ = 0;     // of the frame between Open and Close
  size_t memory_left_ = 0;   // bytes that the peer is to read where they lie
  uint32_t memory_slot_ = 0;  // ... which it has when it has read so many slots
  bool reads_memory_ = false;  // the peer's
  bool shown_cell_ = false;    // the frame that was looked at last has one
  bool waits_ = false;       // the peer is asked to ring
  bool output_ended_ = false;
  bool end_told_ = false;
  bool lost_ = false;
  bool peer_is_dead_ = false;
};

}  // namespace weft::mpi::shm

#endif  // MPI_HYBRID_P2P_SHM_SHM_CONNECTION_H_
