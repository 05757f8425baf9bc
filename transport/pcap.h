#ifndef TRANSPORT_PCAP_H_
#define TRANSPORT_PCAP_H_

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "transport/background_file.h"
#include "transport/fpdu_segmenter.h"
#include "transport/network.h"
#include "transport/sctp_packet.h"
#include "transport/tcp_packet.h"
#include "transport/udp_packet.h"

namespace weft::transport {

// A capture file that Wireshark opens: pcapng, or classic pcap where the name ends in ".pcap"; nanoseconds, Ethernet. Thread safe. Writes are gathered; Flush, a
// megabyte, destruction and (given a network) 100 ms after the first unwritten packet bring them to the file, on a thread of its own: nobody
// waits for a disk, or for who reads a pipe.
//
// The file belongs to the process that opened it: in a child after fork() every call does nothing.
class PcapFile {
 public:
  // `%p` in `name` becomes the process id, `%%` a percent sign. While another process or another PcapFile has the file
  // open,
  // ".PID" is appended instead of clobbering it. The error is an errno of open(2). `network` may be null and outlives
  // this.
  static Result<std::unique_ptr<PcapFile>, int> Open(const std::string& name, Network* network);
  ~PcapFile();
  PcapFile(const PcapFile&) = delete;
  PcapFile& operator=(const PcapFile&) = delete;

  // `comment` is shown with the packet; classic pcap has no place for it.
  void Append(const TcpPacket& packet, const std::string& comment = "");
  void Append(const UdpPacket& packet, const std::string& comment = "");
  void Append(const SctpPacket& packet, const std::string& comment = "");
  void Flush();
  // Flush, and waits until it is in the file, as long as something goes there within any two seconds. For the end of the process.
  void Sync();

  // The name after expansion.
  const std::string& name() const { return name_; }

  // Claims a connection, false when its other end in this process has: each byte is captured once.
  bool Claim(const SocketAddress& local, const SocketAddress& peer);
  void Release(const SocketAddress& local, const SocketAddress& peer);

 private:
  PcapFile(std::string name, int fd, Network* network);
  static Result<std::unique_ptr<PcapFile>, int> OpenIfFree(const std::string& name, Network* network);

  bool InThisProcess() const;
  void FlushLocked();
  void FlushSoon();
  template <typename Packet>
  void AppendAny(const Packet& packet, const std::string& comment);
  template <typename Packet>
  void AppendClassic(const Packet& packet);
  template <typename Packet>
  void AppendBlock(const Packet& packet, const std::string& comment);

  const std::string name_;
  const bool classic_;
  BackgroundFile file_;
  const pid_t owner_;
  Network* const network_;

  std::mutex mutex_;             // guards the rest
  std::vector<uint8_t> buffer_;  // not yet in the file
  TimerId flush_timer_ = 0;
  std::set<std::string> claimed_;
};

// Shows what passes through a stream as a TCP connection in a capture file: SYN, SYN/ACK, ACK, the bytes that were read
// and written at this end with a segment for each FPDU, FIN or RST. Does not change what passes.
class CapturingStream : public ByteStream {
 public:
  // `initiator`: this end connected, the other accepted. `file` outlives the stream.
  CapturingStream(std::unique_ptr<ByteStream> stream, bool initiator, PcapFile* file);
  ~CapturingStream() override;

  IoResult Read(std::span<const iovec> into) override;
  IoResult Write(std::span<const iovec> from) override;
  int ConnectError() override { return stream_->ConnectError(); }
  void ShutdownWrite() override;
  void Abort() override;
  size_t SegmentSize() const override { return stream_->SegmentSize(); }
  SocketAddress LocalAddress() const override { return stream_->LocalAddress(); }
  SocketAddress PeerAddress() const override { return stream_->PeerAddress(); }
  int fd() const override { return stream_->fd(); }
  void Annotate(const std::string& comment) override;
  ByteStream& Innermost() override { return stream_->Innermost(); }

 private:
  struct End {
    SocketAddress address;
    uint32_t next_sequence = 0;
    bool closed = false;  // FIN or RST was shown
  };
  enum class Shown : uint8_t { kNotYet, kYes, kByOtherEnd };

  // Shows the handshake on the first call; false when this stream is not to be shown.
  bool Begin();
  void Show(End& from, End& to, uint8_t flags, ByteSpan payload = {});
  void ShowBytes(End& from, End& to, std::span<const iovec> parts, size_t bytes);
  void ShowPiece(End& from, End& to, ByteSpan piece);
  FpduSegmenter::Direction DirectionFrom(const End& from) const;
  void ShowClose(End& from, End& to, TcpPacket::Flag how);

  const std::unique_ptr<ByteStream> stream_;
  const bool initiator_;
  PcapFile* const file_;
  Shown shown_ = Shown::kNotYet;
  std::string comment_, shown_comment_;  // of the next packet, and the last that was shown
  FpduSegmenter segmenter_;
  End local_, peer_;
};

// WEFT_PCAP: the file of this process, opened on first use; nullptr: nothing is to be captured.
PcapFile* PcapIfAsked();
// Wraps `stream`, or hands it back as it is when nothing is to be captured.
std::unique_ptr<ByteStream> CaptureIfAsked(std::unique_ptr<ByteStream> stream, bool initiator);

}  // namespace weft::transport

#endif  // TRANSPORT_PCAP_H_
