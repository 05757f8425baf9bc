#include "transport/pcap.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/settings.h"
#include "transport/tcp_network.h"

namespace weft::transport {
namespace {

constexpr size_t kFlushAt = 1 << 20;
constexpr Duration kFlushAfter = std::chrono::milliseconds(100);
// Who reads a pipe has so long to take something when the capture ends.
constexpr std::chrono::seconds kPatience{2};

std::string Expand(const std::string& name) {
  std::string expanded;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '%' && i + 1 < name.size() && name[i + 1] == 'p') {
      expanded += std::to_string(getpid());
      ++i;
    } else {
      if (name[i] == '%' && i + 1 < name.size() && name[i + 1] == '%') ++i;
      expanded += name[i];
    }
  }
  return expanded;
}

// Host byte order: the magic number tells readers which that is.
void AppendU32(std::vector<uint8_t>& out, uint32_t value) {
  uint8_t bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

// "x.pcap", and "x.pcap.4711" of a second process.
bool IsClassic(const std::string& name) {
  const size_t dot = name.find_last_not_of("0123456789");
  const std::string_view stem = dot != name.npos && name[dot] == '.' ? std::string_view(name).substr(0, dot) : std::string_view(name);
  return stem.ends_with(".pcap") || name.ends_with(".pcap");
}

void AppendFileHeader(std::vector<uint8_t>& out) {
  AppendU32(out, 0xa1b23c4d);  // pcap with nanoseconds
  uint16_t version[] = {2, 4};
  uint32_t both;
  std::memcpy(&both, version, sizeof both);
  AppendU32(out, both);
  AppendU32(out, 0);        // time zone
  AppendU32(out, 0);        // accuracy
  AppendU32(out, 1 << 18);  // longest packet
  AppendU32(out, 1);        // LINKTYPE_ETHERNET
}

// pcapng, draft-ietf-opsawg-pcapng. Blocks are of 32-bit words: type, length, body, length again.
constexpr uint32_t kSectionHeader = 0x0a0d0d0a, kInterfaceDescription = 1, kEnhancedPacket = 6;
constexpr uint16_t kEndOfOptions = 0, kComment = 1, kApplication = 4, kResolution = 9;

void AppendPair(std::vector<uint8_t>& out, uint16_t first, uint16_t second) {
  const uint16_t both[] = {first, second};
  uint32_t word;
  std::memcpy(&word, both, sizeof word);
  AppendU32(out, word);
}

void PadToWord(std::vector<uint8_t>& out, size_t from) {
  while ((out.size() - from) % 4 != 0) out.push_back(0);
}

void AppendOption(std::vector<uint8_t>& out, uint16_t code, std::string_view value) {
  AppendPair(out, code, static_cast<uint16_t>(value.size()));
  const size_t from = out.size();
  out.insert(out.end(), value.begin(), value.end());
  PadToWord(out, from);
}

size_t BeginBlock(std::vector<uint8_t>& out, uint32_t type) {
  AppendU32(out, type);
  AppendU32(out, 0);  // the length, by EndBlock
  return out.size() - 8;
}

void EndBlock(std::vector<uint8_t>& out, size_t begin) {
  const auto length = static_cast<uint32_t>(out.size() - begin + 4);
  std::memcpy(out.data() + begin + 4, &length, sizeof length);
  AppendU32(out, length);
}

void AppendSectionHeader(std::vector<uint8_t>& out) {
  size_t block = BeginBlock(out, kSectionHeader);
  AppendU32(out, 0x1a2b3c4d);  // of the byte order
  AppendPair(out, 1, 0);       // version
  AppendU32(out, UINT32_MAX);  // length of the section: not known, 64 bits
  AppendU32(out, UINT32_MAX);
  AppendOption(out, kApplication, "weft");
  AppendPair(out, kEndOfOptions, 0);
  EndBlock(out, block);
  block = BeginBlock(out, kInterfaceDescription);
  AppendPair(out, 1, 0);  // LINKTYPE_ETHERNET
  AppendU32(out, 0);      // longest packet: no limit
  AppendOption(out, kResolution, "\x09");  // nanoseconds
  AppendPair(out, kEndOfOptions, 0);
  EndBlock(out, block);
}

}  // namespace

Result<std::unique_ptr<PcapFile>, int> PcapFile::Open(const std::string& name, Network* network) {
  std::string expanded = Expand(name);
  auto file = OpenIfFree(expanded, network);
  if (file || file.error() != EWOULDBLOCK) return file;
  return OpenIfFree(expanded + "." + std::to_string(getpid()), network);
}

Result<std::unique_ptr<PcapFile>, int> PcapFile::OpenIfFree(const std::string& name, Network* network) {
  // A FIFO that nobody reads is an error (ENXIO), and no reason to wait.
  int fd = open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
  if (fd < 0) return errno;
  // Only what is a file can be in use by another capture, and emptied.
  struct stat kind {};
  if (fstat(fd, &kind) == 0 && S_ISREG(kind.st_mode)) {
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      close(fd);
      return EWOULDBLOCK;
    }
    [[maybe_unused]] int truncated = ftruncate(fd, 0);
  }
  return std::unique_ptr<PcapFile>(new PcapFile(name, fd, network));
}

PcapFile::PcapFile(std::string name, int fd, Network* network)
    : name_(std::move(name)), classic_(IsClassic(name_)), file_(fd, name_), owner_(getpid()), network_(network) {
  classic_ ? AppendFileHeader(buffer_) : AppendSectionHeader(buffer_);
  FlushLocked();
}

PcapFile::~PcapFile() {
  if (InThisProcess()) {
    std::unique_lock lock(mutex_);
    while (flush_timer_ != 0 && !network_->Cancel(flush_timer_)) {  // it runs just now, and ends soon
      lock.unlock();
      sched_yield();
      lock.lock();
    }
    FlushLocked();
    lock.unlock();
    file_.Sync(kPatience);
  }
}

bool PcapFile::InThisProcess() const { return owner_ == getpid(); }

void PcapFile::Append(const TcpPacket& packet, const std::string& comment) { AppendAny(packet, comment); }
void PcapFile::Append(const UdpPacket& packet, const std::string& comment) { AppendAny(packet, comment); }
void PcapFile::Append(const SctpPacket& packet, const std::string& comment) { AppendAny(packet, comment); }

template <typename Packet>
void PcapFile::AppendAny(const Packet& packet, const std::string& comment) {
  if (!InThisProcess()) return;
  std::lock_guard lock(mutex_);
  if (classic_) {
    AppendClassic(packet);
  } else {
    AppendBlock(packet, comment);
  }
  if (buffer_.size() >= kFlushAt) {
    FlushLocked();
  } else {
    FlushSoon();
  }
}

template <typename Packet>
void PcapFile::AppendBlock(const Packet& packet, const std::string& comment) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const uint64_t time = static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  const size_t block = BeginBlock(buffer_, kEnhancedPacket);
  AppendU32(buffer_, 0);  // the interface
  AppendU32(buffer_, static_cast<uint32_t>(time >> 32));
  AppendU32(buffer_, static_cast<uint32_t>(time));
  const size_t lengths_at = buffer_.size();
  AppendU32(buffer_, 0);
  AppendU32(buffer_, 0);
  const size_t frame_at = buffer_.size();
  packet.AppendTo(buffer_);
  uint32_t lengths[2];
  lengths[0] = lengths[1] = static_cast<uint32_t>(buffer_.size() - frame_at);
  std::memcpy(buffer_.data() + lengths_at, lengths, sizeof lengths);
  PadToWord(buffer_, frame_at);
  if (!comment.empty()) {
    AppendOption(buffer_, kComment, std::string_view(comment).substr(0, UINT16_MAX));
    AppendPair(buffer_, kEndOfOptions, 0);
  }
  EndBlock(buffer_, block);
}

template <typename Packet>
void PcapFile::AppendClassic(const Packet& packet) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  AppendU32(buffer_, static_cast<uint32_t>(now.tv_sec));
  AppendU32(buffer_, static_cast<uint32_t>(now.tv_nsec));
  size_t lengths_at = buffer_.size();
  AppendU32(buffer_, 0);
  AppendU32(buffer_, 0);
  size_t frame_at = buffer_.size();
  packet.AppendTo(buffer_);
  uint32_t lengths[2];
  lengths[0] = lengths[1] = static_cast<uint32_t>(buffer_.size() - frame_at);
  std::memcpy(buffer_.data() + lengths_at, lengths, sizeof lengths);
}

void PcapFile::FlushSoon() {
  if (network_ == nullptr || flush_timer_ != 0) return;
  flush_timer_ = network_->RunAt(network_->Now() + kFlushAfter, [this] {
    std::lock_guard lock(mutex_);
    flush_timer_ = 0;
    FlushLocked();
  });
}

void PcapFile::Flush() {
  if (!InThisProcess()) return;
  std::lock_guard lock(mutex_);
  FlushLocked();
}

void PcapFile::Sync() {
  if (!InThisProcess()) return;
  Flush();
  file_.Sync(kPatience);
}

void PcapFile::FlushLocked() { file_.Append(buffer_); }

bool PcapFile::Claim(const SocketAddress& local, const SocketAddress& peer) {
  if (!InThisProcess()) return false;
  std::lock_guard lock(mutex_);
  if (claimed_.contains(peer.ToString() + local.ToString())) return false;
  claimed_.insert(local.ToString() + peer.ToString());
  return true;
}

void PcapFile::Release(const SocketAddress& local, const SocketAddress& peer) {
  if (!InThisProcess()) return;
  std::lock_guard lock(mutex_);
  claimed_.erase(local.ToString() + peer.ToString());
}

CapturingStream::CapturingStream(std::unique_ptr<ByteStream> stream, bool initiator, PcapFile* file)
    : stream_(std::move(stream)), initiator_(initiator), file_(file) {}

CapturingStream::~CapturingStream() {
  if (shown_ != Shown::kYes) return;
  ShowClose(local_, peer_, TcpPacket::kFin);
  file_->Release(local_.address, peer_.address);
  file_->Flush();
}

bool CapturingStream::Begin() {
  if (shown_ != Shown::kNotYet) return shown_ == Shown::kYes;
  // Only now, because a stream that is still connecting may not know its addresses.
  local_.address = stream_->LocalAddress();
  peer_.address = stream_->PeerAddress();
  if (peer_.address.family() == AF_UNSPEC || local_.address.family() != peer_.address.family()) return false;
  shown_ = file_->Claim(local_.address, peer_.address) ? Shown::kYes : Shown::kByOtherEnd;
  if (shown_ != Shown::kYes) return false;
  End& client = initiator_ ? local_ : peer_;
  End& server = initiator_ ? peer_ : local_;
  Show(client, server, TcpPacket::kSyn);
  client.next_sequence = 1;
  Show(server, client, TcpPacket::kSyn | TcpPacket::kAck);
  server.next_sequence = 1;
  Show(client, server, TcpPacket::kAck);
  return true;
}

void CapturingStream::Show(End& from, End& to, uint8_t flags, ByteSpan payload) {
  file_->Append({.from = from.address,
                 .to = to.address,
                 .sequence = from.next_sequence,
                 .acknowledgment = (flags & TcpPacket::kAck) != 0 ? to.next_sequence : 0,
                 .flags = flags,
                 .payload = payload},
                comment_);
  if (!comment_.empty()) shown_comment_ = std::exchange(comment_, {});
  from.next_sequence += static_cast<uint32_t>(payload.size());
}

void CapturingStream::Annotate(const std::string& comment) {
  if (comment != shown_comment_) comment_ = comment;
}

void CapturingStream::ShowBytes(End& from, End& to, std::span<const iovec> parts, size_t bytes) {
  if (!Begin()) return;
  for (const iovec& part : parts) {
    ByteSpan moved(static_cast<const uint8_t*>(part.iov_base), std::min(part.iov_len, bytes));
    bytes -= moved.size();
    segmenter_.Add(DirectionFrom(from), moved, [&](ByteSpan piece) { ShowPiece(from, to, piece); });
  }
}

void CapturingStream::ShowPiece(End& from, End& to, ByteSpan piece) {
  while (!piece.empty()) {
    ByteSpan fits = piece.first(std::min(piece.size(), TcpPacket::kMostPayload));
    Show(from, to, TcpPacket::kAck | TcpPacket::kPush, fits);
    piece = piece.subspan(fits.size());
  }
}

FpduSegmenter::Direction CapturingStream::DirectionFrom(const End& from) const {
  return (&from == &local_) == initiator_ ? FpduSegmenter::kFromInitiator : FpduSegmenter::kFromResponder;
}

void CapturingStream::ShowClose(End& from, End& to, TcpPacket::Flag how) {
  if (from.closed || !Begin()) return;
  segmenter_.Flush(DirectionFrom(from), [&](ByteSpan piece) { ShowPiece(from, to, piece); });
  from.closed = true;
  Show(from, to, how | TcpPacket::kAck);
  from.next_sequence += 1;
  if (how == TcpPacket::kRst) to.closed = true;
  file_->Flush();
}

IoResult CapturingStream::Read(std::span<const iovec> into) {
  IoResult result = stream_->Read(into);
  if (result.kind == IoResult::Kind::kDone) ShowBytes(peer_, local_, into, result.bytes);
  if (result.kind == IoResult::Kind::kEndOfStream) ShowClose(peer_, local_, TcpPacket::kFin);
  if (result.kind == IoResult::Kind::kFailed) ShowClose(peer_, local_, TcpPacket::kRst);
  return result;
}

IoResult CapturingStream::Write(std::span<const iovec> from) {
  IoResult result = stream_->Write(from);
  if (result.kind == IoResult::Kind::kDone) ShowBytes(local_, peer_, from, result.bytes);
  return result;
}

void CapturingStream::ShutdownWrite() {
  ShowClose(local_, peer_, TcpPacket::kFin);
  stream_->ShutdownWrite();
}

void CapturingStream::Abort() {
  local_.closed = false;  // a reset can follow a FIN
  ShowClose(local_, peer_, TcpPacket::kRst);
  stream_->Abort();
}

namespace {

// The file of this process, or null. Opened once; again in a child after fork(), under a name of its own.
PcapFile* ProcessPcap() {
  struct Entry {
    std::unique_ptr<PcapFile> file;
    pid_t owner;
    Entry* of_parent;  // keeps what the parent had reachable, and its lock unused
  };
  static std::atomic<Entry*> current{nullptr};
  static std::mutex opening;

  Entry* entry = current.load(std::memory_order_acquire);
  if (entry != nullptr && entry->owner == getpid()) return entry->file.get();
  std::lock_guard lock(opening);
  entry = current.load(std::memory_order_acquire);
  if (entry != nullptr && entry->owner == getpid()) return entry->file.get();

  const std::string& name = ProcessSettings().pcap;
  auto file = PcapFile::Open(name, &ProcessNetwork());
  if (!file) {
    LogWarning(Format("cannot open WEFT_PCAP=%s (%s); nothing is captured", name.c_str(), strerror(file.error())));
  }
  auto* fresh = new Entry{file ? std::move(file).value() : nullptr, getpid(), entry};
  current.store(fresh, std::memory_order_release);
  if (entry == nullptr) {
    std::atexit([] {
      Entry* last = current.load(std::memory_order_acquire);
      if (last->file != nullptr) last->file->Sync();
    });
  }
  return fresh->file.get();
}

}  // namespace

PcapFile* PcapIfAsked() { return ProcessSettings().pcap.empty() ? nullptr : ProcessPcap(); }

std::unique_ptr<ByteStream> CaptureIfAsked(std::unique_ptr<ByteStream> stream, bool initiator) {
  PcapFile* file = PcapIfAsked();
  if (file == nullptr) return stream;
  return std::make_unique<CapturingStream>(std::move(stream), initiator, file);
}

}  // namespace weft::transport
