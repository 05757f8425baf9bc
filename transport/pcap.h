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

// A capture file for Wireshark: pcapng, or classic pcap if the name ends in ".pcap". Time stamps in nanoseconds,
// Ethernet frames. Thread safe. Writes are collected. A thread of its own writes them to the file after Flush, after
// one megabyte, on destruction, and (with a network) 100 ms after the first unwritten packet. So no other thread waits
// for a disk or for the reader of a pipe.
//
// The file belongs to the process that opened it: in a child of fork() every call does nothing.
class PcapFile {
 public:
  // `%p` in `name` becomes the process id, `%%` a percent sign. If another process or another PcapFile has the file
  // open, ".PID" is appended to the name, so that the file is not overwritten. The error is an errno of open(2).
  // `network` may be null; it outlives the PcapFile.
  static Result<std::unique_ptr<PcapFile>, int> Open(const std::string& name, Network* network);
  ~PcapFile();
  PcapFile(const PcapFile&) = delete;
  PcapFile& operator=(const PcapFile&) = delete;

  // `comment` is shown with the packet; classic pcap has no comments.
  void Append(const TcpPacket& packet, const std::string& comment = "");
  void Append(const UdpPacket& packet, const std::string& comment = "");
  void Append(const SctpPacket& packet, const std::string& comment = "");
  void Flush();
  // Flush, and waits until everything is in the file, as long as data is written within any two seconds. For the end of
  // the process.
  void Sync();

  // The name after expansion of `%p`.
  const std::string& name() const { return name_; }

  // Claims a connection. Returns false if its other end in this process has claimed it, so that each byte is captured
  // once.
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

  std::mutex mutex_;             // guards the members below
  std::vector<uint8_t> buffer_;  // not written yet
  TimerId flush_timer_ = 0;
  std::set<std::string> claimed_;
};

// Records a stream as a TCP connection in a capture file: SYN, SYN/ACK, ACK, the bytes that this end reads and writes
// with one segment for each FPDU, FIN or RST. Passes all data on unchanged.
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
    bool closed = false;  // FIN or RST was recorded
  };
  enum class Shown : uint8_t { kNotYet, kYes, kByOtherEnd };

  // Records the handshake on the first call. Returns false if this stream is not to be recorded.
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
  std::string comment_, shown_comment_;  // for the next packet, and the last one recorded
  FpduSegmenter segmenter_;
  End local_, peer_;
};

// WEFT_PCAP: the file of this process, opened on first use; nullptr: there is no capture.
PcapFile* PcapIfAsked();
// Wraps `stream`, or returns it unchanged if there is no capture.
std::unique_ptr<ByteStream> CaptureIfAsked(std::unique_ptr<ByteStream> stream, bool initiator);

}  // namespace weft::transport

#endif  // TRANSPORT_PCAP_H_
