// One process of the soak: `worker server PORT`, or `worker client SECONDS SEED CONNECTIONS PORT...`. A plain verbs program, linked with the
// distribution's libraries, that checks all that must hold whatever fails: completions come once, in order, for every request;
// messages come once, in order and whole while their connection stands; memory is what was written; nothing hangs; nothing is left behind.
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>
#include <random>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr uint32_t kReceives = 16;
constexpr uint32_t kMessage = 4096;     // bytes of the longest Send
constexpr uint32_t kWindow = 64 * 1024;  // bytes that the peer writes and reads
// In the memory of each peer: the count to which the other adds by atomics.
constexpr uint64_t kCounter = 2 * kWindow + kMessage * (kReceives + 1);
// Longer than any fault of the driver holds a connection up, on a machine that is busy.
constexpr auto kHang = 60s;

volatile sig_atomic_t g_stop = 0;

struct Counts {
  unsigned long rounds = 0, connected = 0, ended = 0, refused = 0, failed_calls = 0;
} g_counts;

[[noreturn]] void Violated(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::printf("SOAK VIOLATED: ");
  std::vprintf(format, arguments);
  std::printf("\n");
  std::fflush(stdout);
  va_end(arguments);
  _exit(3);
}

size_t OpenDescriptors() {
  size_t count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

// Bytes from a seed: what is sent can be told from anything else.
void Fill(uint8_t* bytes, size_t length, uint64_t seed) {
  for (size_t i = 0; i < length; ++i) {
    if (i % 8 == 0) seed = seed * 6364136223846793005u + 1442695040888963407u;
    bytes[i] = static_cast<uint8_t>(seed >> (8 * (i % 8)));
  }
}

struct Hello {  // in private data
  uint64_t address;
  uint32_t key;
};
struct Header {  // of a message
  uint64_t sequence, seed;
  uint32_t length;
};

// The verbs objects of one connection, on either side.
class Peer {
 public:
  explicit Peer(rdma_cm_id* its_id) : id(its_id) {}
  virtual ~Peer() {
    if (id->qp != nullptr) rdma_destroy_qp(id);
    if (mr != nullptr && ibv_dereg_mr(mr) != 0) Violated("ibv_dereg_mr: %s", strerror(errno));
    if (cq != nullptr && ibv_destroy_cq(cq) != 0) Violated("ibv_destroy_cq: %s", strerror(errno));
    if (pd != nullptr && ibv_dealloc_pd(pd) != 0) Violated("ibv_dealloc_pd: %s", strerror(errno));
    if (rdma_destroy_id(id) != 0) Violated("rdma_destroy_id: %s", strerror(errno));
  }

  // False when a call failed, as it may.
  bool Make() {
    pd = ibv_alloc_pd(id->verbs);
    if (pd == nullptr) return Refused();
    cq = ibv_create_cq(id->verbs, 128, nullptr, nullptr, 0);
    if (cq == nullptr) return Refused();
    ibv_device_attr device{};
    if (ibv_query_device(id->verbs, &device) != 0) Violated("ibv_query_device");
    has_atomics = device.atomic_cap != IBV_ATOMIC_NONE;
    memory.resize(kCounter + 2 * sizeof(uint64_t));
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    if (has_atomics) access |= IBV_ACCESS_REMOTE_ATOMIC;
    mr = ibv_reg_mr(pd, memory.data(), memory.size(), access);
    if (mr == nullptr) return Refused();
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = cq;
    attributes.cap = {32, kReceives, 1, 1, 0};
    attributes.qp_type = IBV_QPT_RC;
    if (rdma_create_qp(id, pd, &attributes) != 0) return Refused();
    for (uint32_t i = 0; i < kReceives; ++i) {
      if (!PostReceive()) return false;
    }
    return true;
  }

  uint8_t* window() { return memory.data(); }
  uint8_t* copy() { return memory.data() + kWindow; }
  uint8_t* outgoing() { return memory.data() + 2 * kWindow; }
  // Where atomics put what they found.
  uint64_t* found() { return reinterpret_cast<uint64_t*>(memory.data() + kCounter + sizeof(uint64_t)); }
  uint8_t* incoming(uint64_t count) { return memory.data() + 2 * kWindow + kMessage * (1 + count % kReceives); }

  bool PostReceive() {
    ibv_sge piece{reinterpret_cast<uint64_t>(incoming(receives_posted)), kMessage, mr->lkey};
    ibv_recv_wr wr{}, *bad = nullptr;
    wr.wr_id = receives_posted;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    for (int tries = 0; tries < 1000; ++tries) {
      const int error = ibv_post_recv(id->qp, &wr, &bad);
      if (error == 0) return ++receives_posted, true;
      if (bad != &wr) Violated("bad_wr of ibv_post_recv");
      ++g_counts.failed_calls;
    }
    return false;
  }
  bool Post(ibv_wr_opcode opcode, void* bytes, uint32_t length, uint64_t remote = 0, uint32_t key = 0) {
    ibv_sge piece{reinterpret_cast<uint64_t>(bytes), length, mr->lkey};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.wr_id = sends_posted;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = key;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      wr.wr.atomic.remote_addr = remote;
      wr.wr.atomic.compare_add = 1;
      wr.wr.atomic.rkey = key;
    }
    for (int tries = 0; tries < 1000; ++tries) {
      const int error = ibv_post_send(id->qp, &wr, &bad);
      if (error == 0) return ++sends_posted, true;
      if (bad != &wr) Violated("bad_wr of ibv_post_send");
      ++g_counts.failed_calls;
    }
    return false;
  }

  void Poll() {
    ibv_wc completions[16];
    const int count = ibv_poll_cq(cq, 16, completions);
    if (count < 0) Violated("ibv_poll_cq");
    for (int i = 0; i < count; ++i) Take(completions[i]);
    if (count > 0) last_progress = Clock::now();
  }

  bool Drained() const { return sends_done == sends_posted && receives_done == receives_posted; }
  void Fail() {
    if (failed || id->qp == nullptr) return;
    failed = true;
    last_progress = Clock::now();
    // Either may fail (the program may not have been connected, or a fault says so); a reset queue pair would flush nothing.
    rdma_disconnect(id);
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    for (int tries = 0; tries < 1000 && ibv_modify_qp(id->qp, &attributes, IBV_QP_STATE) != 0; ++tries) ++g_counts.failed_calls;
  }
  bool Hangs() const { return Clock::now() - last_progress > kHang; }

  rdma_cm_id* const id;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  std::vector<uint8_t> memory;
  uint64_t sends_posted = 0, sends_done = 0, receives_posted = 0, receives_done = 0;
  bool failed = false;
  bool has_atomics = false;  // persona roce
  Clock::time_point last_progress = Clock::now();

 protected:
  virtual void OnReceived(const uint8_t* bytes, uint32_t length) = 0;
  virtual void OnSent() {}

 private:
  bool Refused() { return ++g_counts.failed_calls, false; }

  void Take(const ibv_wc& completion) {
    if (completion.qp_num != id->qp->qp_num) Violated("a completion of another queue pair");
    const bool failed_now = completion.status != IBV_WC_SUCCESS;
    const bool receive = (completion.opcode & IBV_WC_RECV) != 0;  // Weft tells it of failed requests too
    uint64_t& done = receive ? receives_done : sends_done;
    const uint64_t posted = receive ? receives_posted : sends_posted;
    if (done == posted) Violated("a %s completed that was not posted", receive ? "receive" : "send");
    if (completion.wr_id != done) {
      Violated("%s %llu completed, expected %llu", receive ? "receive" : "send", static_cast<unsigned long long>(completion.wr_id),
               static_cast<unsigned long long>(done));
    }
    if (send_error && !failed_now && !receive) Violated("a send succeeded after one had failed");
    if (failed_now) {
      if (completion.status != IBV_WC_WR_FLUSH_ERR && !receive) {
        if (send_error) Violated("a send is blamed after another one failed, status %d", completion.status);
      }
      send_error |= !receive;
      ++done;
      return Fail();
    }
    const uint64_t count = done++;
    if (receive) {
      OnReceived(incoming(count), completion.byte_len);
      if (!failed && !PostReceive()) Fail();
    } else {
      OnSent();
    }
  }

  bool send_error = false;  // a send failed
};

// --- server -------------------------------------------------------------------------------------------------------------------

class ServerPeer final : public Peer {
 public:
  using Peer::Peer;

 private:
  void OnReceived(const uint8_t* bytes, uint32_t length) override {
    Header header;
    if (length < sizeof header) Violated("a message of %u bytes", length);
    std::memcpy(&header, bytes, sizeof header);
    if (header.sequence != next_) {
      Violated("message %llu came, expected %llu", static_cast<unsigned long long>(header.sequence), static_cast<unsigned long long>(next_));
    }
    if (header.length != length) Violated("a message of %u bytes came with %u", header.length, length);
    std::vector<uint8_t> expected(length - sizeof header);
    Fill(expected.data(), expected.size(), header.seed);
    if (!std::equal(expected.begin(), expected.end(), bytes + sizeof header)) {
      Violated("a wrong byte in message %llu", static_cast<unsigned long long>(next_));
    }
    ++next_;
    std::memcpy(outgoing(), &header.sequence, sizeof header.sequence);
    if (!failed && !Post(IBV_WR_SEND, outgoing(), sizeof header.sequence)) Fail();
  }
  uint64_t next_ = 0;
};

int Serve(uint16_t port) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* listener = nullptr;
  if (channel == nullptr || rdma_create_id(channel, &listener, nullptr, RDMA_PS_TCP) != 0) return 4;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&address)) != 0 || rdma_listen(listener, 64) != 0) return 4;
  fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);

  std::list<std::unique_ptr<ServerPeer>> peers;
  Clock::time_point stop_at = Clock::time_point::max();
  for (;;) {
    rdma_cm_event* event = nullptr;
    while (rdma_get_cm_event(channel, &event) == 0) {
      rdma_cm_id* id = event->id;
      const rdma_cm_event_type type = event->event;
      rdma_ack_cm_event(event);
      if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
        auto peer = std::make_unique<ServerPeer>(id);
        id->context = peer.get();
        bool made = peer->Make();
        if (made) {
          const Hello hello{reinterpret_cast<uint64_t>(peer->window()), peer->mr->rkey};
          rdma_conn_param parameters{};
          parameters.private_data = &hello;
          parameters.private_data_len = sizeof hello;
          parameters.responder_resources = parameters.initiator_depth = 4;
          parameters.rnr_retry_count = 7;
          if (rdma_accept(id, &parameters) != 0) made = false;
        }
        if (!made) {
          rdma_reject(id, nullptr, 0);
          peer->Fail();
          ++g_counts.refused;
        } else {
          ++g_counts.connected;
        }
        peers.push_back(std::move(peer));
      } else if (id != listener && type != RDMA_CM_EVENT_ESTABLISHED && type != RDMA_CM_EVENT_DEVICE_REMOVAL &&
                 type != RDMA_CM_EVENT_ADDR_CHANGE && type != RDMA_CM_EVENT_TIMEWAIT_EXIT) {
        static_cast<ServerPeer*>(id->context)->Fail();
      }
    }
    for (auto it = peers.begin(); it != peers.end();) {
      ServerPeer& peer = **it;
      if (peer.cq != nullptr && peer.id->qp != nullptr) peer.Poll();
      const bool over = peer.id->qp == nullptr || (peer.failed && peer.Drained());
      if (over) {
        ++g_counts.ended;
        it = peers.erase(it);
        continue;
      }
      if (peer.failed && peer.Hangs()) Violated("requests of a queue pair in error do not complete: %llu of %llu sends, %llu of %llu receives",
                                                static_cast<unsigned long long>(peer.sends_done), static_cast<unsigned long long>(peer.sends_posted),
                                                static_cast<unsigned long long>(peer.receives_done), static_cast<unsigned long long>(peer.receives_posted));
      ++it;
    }
    if (g_stop != 0 && stop_at == Clock::time_point::max()) {
      stop_at = Clock::now();
      for (auto& peer : peers) peer->Fail();
    }
    if (g_stop != 0 && peers.empty()) break;
    usleep(200);
  }
  rdma_destroy_id(listener);
  rdma_destroy_event_channel(channel);
  return 0;
}

// --- client -------------------------------------------------------------------------------------------------------------------

class ClientPeer final : public Peer {
 public:
  ClientPeer(rdma_cm_id* its_id, uint64_t seed) : Peer(its_id), random_(seed) {}

  void Established(const Hello& hello) {
    hello_ = hello;
    established = true;
    Begin();
  }
  // Up to the queue pair and the next step; false when it has failed.
  bool OnEvent(const rdma_cm_event& event) {
    switch (event.event) {
      case RDMA_CM_EVENT_ADDR_RESOLVED:
        return rdma_resolve_route(id, 2000) == 0;
      case RDMA_CM_EVENT_ROUTE_RESOLVED: {
        if (!Make()) return false;
        rdma_conn_param parameters{};
        parameters.responder_resources = parameters.initiator_depth = 4;
        parameters.rnr_retry_count = random_() % 8;  // 7: for ever
        parameters.retry_count = 7;
        return rdma_connect(id, &parameters) == 0;
      }
      case RDMA_CM_EVENT_ESTABLISHED: {
        Hello hello{};
        if (event.param.conn.private_data_len < sizeof hello) Violated("private data of %u bytes", event.param.conn.private_data_len);
        std::memcpy(&hello, event.param.conn.private_data, sizeof hello);
        ++g_counts.connected;
        Established(hello);
        return true;
      }
      case RDMA_CM_EVENT_DEVICE_REMOVAL:
      case RDMA_CM_EVENT_ADDR_CHANGE:
      case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        return true;
      default:
        return false;
    }
  }

  bool established = false;
  bool begin_again = true;

 private:
  // A round: a Write, a Read of it, an atomic that counts the rounds, a message that is answered.
  void Begin() {
    if (failed || !begin_again) return;
    length_ = 1 + static_cast<uint32_t>(random_() % kWindow);
    Fill(window(), length_, random_());
    std::memset(copy(), 0, length_);
    Header header{sequence_, random_(), static_cast<uint32_t>(sizeof header + random_() % (kMessage - sizeof header))};
    std::memcpy(outgoing(), &header, sizeof header);
    Fill(outgoing() + sizeof header, header.length - sizeof header, header.seed);
    answered_ = false;
    done_ = 0;
    if (!Post(IBV_WR_RDMA_WRITE, window(), length_, hello_.address, hello_.key) ||
        !Post(IBV_WR_RDMA_READ, copy(), length_, hello_.address, hello_.key) ||
        (has_atomics &&
         !Post(IBV_WR_ATOMIC_FETCH_AND_ADD, found(), sizeof(uint64_t), hello_.address + kCounter, hello_.key)) ||
        !Post(IBV_WR_SEND, outgoing(), header.length)) {
      Fail();
    }
  }
  void OnSent() override {
    ++done_;
    if (done_ == 2 && std::memcmp(window(), copy(), length_) != 0) Violated("a wrong byte read back");
    if (done_ == 3 && has_atomics && *found() != sequence_) {
      Violated("an atomic found %llu after %llu rounds", static_cast<unsigned long long>(*found()),
               static_cast<unsigned long long>(sequence_));
    }
    EndIfDone();
  }
  void OnReceived(const uint8_t* bytes, uint32_t length) override {
    uint64_t sequence = 0;
    if (length != sizeof sequence) Violated("an answer of %u bytes", length);
    std::memcpy(&sequence, bytes, sizeof sequence);
    if (sequence != sequence_ || answered_) Violated("a wrong answer");
    answered_ = true;
    EndIfDone();
  }
  void EndIfDone() {
    if (!answered_ || done_ != (has_atomics ? 4 : 3)) return;
    ++sequence_;
    ++g_counts.rounds;
    Begin();
  }

  std::mt19937_64 random_;
  Hello hello_{};
  uint64_t sequence_ = 0;
  uint32_t length_ = 0;
  int done_ = 0;
  bool answered_ = true;
};

int Call(int seconds, uint64_t seed, int connections, const std::vector<uint16_t>& ports) {
  std::mt19937_64 random(seed);
  rdma_event_channel* channel = rdma_create_event_channel();
  if (channel == nullptr) return 4;
  fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  std::list<std::unique_ptr<ClientPeer>> peers;
  Clock::time_point next_attempt{};
  size_t most_descriptors = 0;
  for (;;) {
    const bool over = Clock::now() >= end;
    if (!over && static_cast<int>(peers.size()) < connections && Clock::now() >= next_attempt) {
      rdma_cm_id* id = nullptr;
      if (rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0) Violated("rdma_create_id: %s", strerror(errno));
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_port = htons(ports[random() % ports.size()]);
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      auto peer = std::make_unique<ClientPeer>(id, random());
      id->context = peer.get();
      if (rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 2000) == 0) {
        peers.push_back(std::move(peer));
      } else {
        ++g_counts.failed_calls;
      }
      next_attempt = Clock::now() + 2ms;
    }
    rdma_cm_event* event = nullptr;
    while (rdma_get_cm_event(channel, &event) == 0) {
      auto* peer = static_cast<ClientPeer*>(event->id->context);
      const bool fine = peer->OnEvent(*event);
      peer->last_progress = Clock::now();
      rdma_ack_cm_event(event);
      if (fine) continue;
      ++g_counts.ended;
      peer->Fail();
      peer->failed = true;  // also one without a queue pair
    }
    for (auto it = peers.begin(); it != peers.end();) {
      ClientPeer& peer = **it;
      const bool has_queue_pair = peer.id->qp != nullptr;
      if (has_queue_pair) peer.Poll();
      if (over) {
        peer.begin_again = false;
        if (peer.established) peer.Fail();
      }
      if (peer.failed && (!has_queue_pair || peer.Drained())) {
        it = peers.erase(it);
        continue;
      }
      if (peer.Hangs()) {
        Violated("no progress for a minute: %s, %s, %llu of %llu sends, %llu of %llu receives", peer.established ? "established" : "connecting",
                 peer.failed ? "failed" : "not failed", static_cast<unsigned long long>(peer.sends_done),
                 static_cast<unsigned long long>(peer.sends_posted), static_cast<unsigned long long>(peer.receives_done),
                 static_cast<unsigned long long>(peer.receives_posted));
      }
      ++it;
    }
    if (g_counts.rounds % 64 == 0) most_descriptors = std::max(most_descriptors, OpenDescriptors());
    if (over && peers.empty()) break;
    usleep(200);
  }
  rdma_destroy_event_channel(channel);
  std::printf("descriptors %zu of at most %zu\n", OpenDescriptors(), most_descriptors);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGTERM, [](int) { g_stop = 1; });
  int status = 2;
  if (argc == 3 && strcmp(argv[1], "server") == 0) {
    status = Serve(static_cast<uint16_t>(atoi(argv[2])));
  } else if (argc >= 6 && strcmp(argv[1], "client") == 0) {
    std::vector<uint16_t> ports;
    for (int i = 5; i < argc; ++i) ports.push_back(static_cast<uint16_t>(atoi(argv[i])));
    status = Call(atoi(argv[2]), strtoull(argv[3], nullptr, 10), atoi(argv[4]), ports);
  }
  std::printf("%s: rounds %lu, connected %lu, ended %lu, refused %lu, failed calls %lu\n", argc > 1 ? argv[1] : "", g_counts.rounds,
              g_counts.connected, g_counts.ended, g_counts.refused, g_counts.failed_calls);
  return status;
}
