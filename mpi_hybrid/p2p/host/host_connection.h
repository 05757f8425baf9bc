#ifndef MPI_HYBRID_P2P_HOST_HOST_CONNECTION_H_
#define MPI_HYBRID_P2P_HOST_HOST_CONNECTION_H_

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
#include "mpi_hybrid/p2p/host/cells.h"
#include "mpi_hybrid/p2p/host/ring.h"

namespace weft::mpi::host {

// Carries the frames of one link through two rings. Data that it cannot write now is written by later calls of Write.
//
// Long data that the peer can read directly from this process's memory is only referenced in the ring. It counts as
// written when the peer has read it; nothing else of the link is sent meanwhile.
class HostConnection final : public Lane {
 public:
  class Owner {
   public:
    // Wakes the peer, which sleeps.
    virtual void WakePeer(HostConnection& connection) = 0;
    // Copies from the memory of the peer's process, like process_vm_readv(2). 0: that is not possible. -1: the process
    // is gone.
    virtual ssize_t ReadPeer(HostConnection& connection, std::span<const iovec> to, uint64_t from, size_t bytes) = 0;
    // Whether long data may be copied through the rings, which requires this process to poll until the data is gone.
    // True: Leave() will be called when it stops polling.
    virtual bool StaysForLongData() = 0;
    // The connection is lost (is_lost). The owner destroys it when none of its functions is running.
    virtual void OnLost(HostConnection& connection) = 0;

   protected:
    ~Owner() = default;
  };
  // Memory shared by the two processes. All of it must outlive the connection.
  struct Memory {
    RingPage& out;
    RingPage& in;
    Cells& cells;             // of this process
    const uint8_t* its_area;  // contains the cells of the peer
    const std::atomic<uint32_t>& its_attention;  // Segment::attention_of
    const std::atomic<uint32_t>& its_stay;       // PlaceCard::stays
  };

  // `in_place_from`: see HostTransport. `staging`: as for Link::PrepareRead; shared, its contents are valid only during
  // a call.
  HostConnection(Owner& owner, Link& link, int place, const Memory& memory, size_t in_place_from,
                std::span<uint8_t> staging)
      : owner_(owner),
        link_(link),
        place_(place),
        cells_(memory.cells),
        its_cells_(memory.its_area),
        its_attention_(memory.its_attention),
        its_stay_(memory.its_stay),
        in_place_from_(in_place_from),
        staging_(staging),
        writer_(memory.out),
        reader_(memory.in, kCells, kCellBytes) {
    cell_of_.fill(kNoCell);
  }
  ~HostConnection();
  HostConnection(const HostConnection&) = delete;
  HostConnection& operator=(const HostConnection&) = delete;

  Link& link() const { return link_; }
  int place() const { return place_; }  // of the peer

  // The reader may copy from the peer's process, until it finds that it cannot.
  void set_reads_memory() {
    reads_memory_ = true;
    reader_.set_reads_memory();
  }

  // Reads what has arrived, up to a turn's amount. Read and Write may complete requests, which may call Write. They
  // return whether anything moved.
  bool Read();
  // Writes the link's queue as far as there is space.
  bool Write();
  // Whether data waits for the peer to read.
  bool is_blocked() const {
    return !lost_ && (memory_left_ != 0 || (link_.has_output() && !link_.is_gone() && !output_ended_));
  }
  // This process may not poll for a while: the peer is told the address of long data that is partly written.
  void Leave();
  // See Transport::WriteAtOnce.
  size_t WriteAtOnce(std::span<const iovec> pieces, size_t total);
  // For frames that fit into a slot, or into a slot and one cell. A frame with an offer is not returned.
  Room Open(size_t body_bytes) override;
  void Close(size_t body_bytes) override;
  size_t Peek(std::span<iovec, 2> pieces) override;
  void Taken() override;
  bool PeerStays() const override { return its_stay_.load(std::memory_order_relaxed) == 1; }
  bool Fetch(Payload& to, uint64_t offer, uint64_t bytes) override;
  // Writes nothing more. The peer is told after all that was written.
  void EndOutput();
  bool has_pending_end() const { return !lost_ && output_ended_ && !end_told_; }

  // Called before a sleep, after the peer can see that this process is about to sleep. True: there is nothing to do.
  // The peer rings when it has written something, and when there is space again for blocked data.
  bool Arm();
  // Called after the sleep: the peer need not ring for space. Writes of other threads in between do not change that.
  void OnAwake() {
    if (std::exchange(waits_, false)) writer_.StopWaiting();
  }

  // The peer is gone: reads what it wrote before, and ends the connection. `is_dead`: its process has died as well.
  void OnPeerGone(bool is_dead);
  bool is_lost() const { return lost_; }
  // Tells the peer that this process no longer reads.
  void SayGone() { reader_.set_gone(); }
  bool peer_reads_nothing() const { return writer_.reader_is_gone(); }
  // Whether the words of this process in the rings have the values that it wrote (host/own_words.h).
  bool HasItsWords() const { return lost_ || (writer_.HasItsWords() && reader_.HasItsWords()); }

 private:
  static constexpr uint16_t kNoCell = UINT16_MAX;
  static constexpr size_t kMostHeld = 16;  // cells of one connection that are in use

  bool Take(const RingItem& item);
  bool TakeFromMemory(uint64_t from, uint64_t bytes);
  void Publish();
  bool Reclaim();
  void TakeCellsBack();
  bool MemoryWasRead();
  // Whether another slot, with or without a cell, can be written.
  bool CanPut() const { return writer_.has_room() && held_ < kMostHeld; }
  // A connection whose peer does not read leaves cells for the others. Without a cell, the slots alone carry as much as
  // they can.
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
  uint32_t reclaimed_ = 0;   // slots whose cells have been returned
  uint32_t slot_ = 0;        // index of the slot after those
  uint32_t next_slot_ = 0;   // index of the slot after writer_.written()
  size_t held_ = 0;          // cells
  size_t open_cell_ = 0;     // of the frame between Open and Close
  size_t memory_left_ = 0;   // bytes that the peer is to read directly from this process's memory
  uint32_t memory_slot_ = 0;  // the peer has read them when it has read this many slots
  bool reads_memory_ = false;  // of the peer
  bool shown_cell_ = false;    // the last frame of Peek has a cell
  bool waits_ = false;       // the peer was asked to ring
  bool output_ended_ = false;
  bool end_told_ = false;
  bool lost_ = false;
  bool peer_is_dead_ = false;
};

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_P2P_HOST_HOST_CONNECTION_H_
