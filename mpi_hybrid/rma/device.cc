#include "mpi_hybrid/rma/device.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <mpi.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "base/check.h"
#include "base/file_limit.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/rma/link.h"
#include "mpi_hybrid/rma/listen_addresses.h"
#include "mpi_hybrid/rma/request_id.h"
#include "mpi_hybrid/rma/service.h"
#include "transport/interfaces.h"

namespace weft::mpi::rma {
namespace {

constexpr uint32_t kIdlePolls = 64;     // how seldom progress looks here while nothing is expected
constexpr uint32_t kLivelyPolls = 256;  // ... but so many times after something was found
constexpr int kConnectStepMs = 100;     // between looks whether a target that does not answer lives
// The first nudge of a target that does not answer its first message. The pauses grow to kLongestPause.
constexpr std::chrono::milliseconds kFirstNudge{20};
constexpr std::chrono::microseconds kGreetingStep{100};
constexpr int kResolveOwnMs = 2000;
constexpr std::chrono::seconds kPatience{30};  // with silence, and with want of room, as for messages (p2p/dial.h)
constexpr std::chrono::milliseconds kFirstPause{10}, kLongestPause{640};  // between tries; doubled each time
constexpr int kCompletionsPerLink = Link::kDepth + kSlots;                // replies, too
constexpr size_t kWordsPerChunk = 64;
constexpr int kFirstLinks = 4;  // for which the completion queue has room at first

using Clock = std::chrono::steady_clock;
using transport::SocketAddress;

// A child of fork(2) that calls exit(3) leaves alone what its parent goes on with.
struct DeletesInItsProcess {
  void operator()(Device* device) const {
    if (device->process() == getpid()) delete device;
  }
};

std::unique_ptr<Device, DeletesInItsProcess> g_device;

Error DeviceFailed(const std::string& what, int error) {
  if (IsShortage(error)) return Error(MPI_ERR_OTHER, what + ": " + DescribeShortage(error));
  return Error(MPI_ERR_OTHER, what + ": " + std::strerror(error) +
                                  "; one-sided communication needs an RDMA device (Weft's libibverbs.so.1 "
                                  "and librdmacm.so.1 in the library path provide one)");
}

// siw does not listen on 127.0.0.1, by which ranks of one host know each other.
std::vector<SocketAddress> InterfaceAddresses() {
  std::vector<SocketAddress> addresses;
  for (const transport::InterfaceAddress& one : transport::ListAddresses()) {
    if (one.address.family() == AF_INET) addresses.push_back(one.address);
  }
  return addresses;
}

bool IsWeft(ibv_context* context) { return std::strncmp(ibv_get_device_name(context->device), "weft_", 5) == 0; }

// The device of an identifier that is bound; nullptr: none. A loopback address binds to no device, and only Weft has
// one for it.
ibv_context* DeviceOf(rdma_cm_id* bound) {
  if (bound->verbs != nullptr) return bound->verbs;
  rdma_cm_id* probe = nullptr;
  if (rdma_create_id(nullptr, &probe, nullptr, RDMA_PS_TCP) != 0) return nullptr;
  const bool resolved = rdma_resolve_addr(probe, nullptr, rdma_get_local_addr(bound), kResolveOwnMs) == 0;
  ibv_context* const context = resolved && probe->verbs != nullptr && IsWeft(probe->verbs) ? probe->verbs : nullptr;
  rdma_destroy_id(probe);  // librdmacm keeps its devices open
  errno = context == nullptr ? ENODEV : 0;
  return context;
}

}  // namespace

Error Device::Open(Device** device) {
  if (g_device == nullptr) {
    std::unique_ptr<Device> made(new Device);
    WEFT_MPI_TRY(made->Start());
    g_device.reset(made.release());
    Progress::AddStage(g_device.get());
  }
  *device = g_device.get();
  return {};
}

Device* Device::current() { return g_device.get(); }

void Device::Close() {
  if (g_device == nullptr) return;
  Progress::RemoveStage(g_device.get());
  g_device.reset();
}

Error Device::Start() {
  const char* connect = secure_getenv("WEFT_MPI_RMA_CONNECT");
  connects_at_once_ = connect != nullptr && std::strcmp(connect, "static") == 0;
  if (connect != nullptr && !connects_at_once_ && std::strcmp(connect, "dynamic") != 0) {
    return Error(MPI_ERR_OTHER, std::string("WEFT_MPI_RMA_CONNECT is '") + connect + "'; it can be static or dynamic");
  }
  const char* atomics = secure_getenv("WEFT_MPI_RMA_ATOMICS");
  const bool wants_atomics = atomics != nullptr && std::strcmp(atomics, "on") == 0;
  if (atomics != nullptr && !wants_atomics && std::strcmp(atomics, "off") != 0) {
    return Error(MPI_ERR_OTHER, std::string("WEFT_MPI_RMA_ATOMICS is '") + atomics + "'; it can be on or off");
  }
  const size_t size = static_cast<size_t>(ThisJob().size);
  events_ = rdma_create_event_channel();
  if (events_ == nullptr) return DeviceFailed("rdma_create_event_channel", errno);
  fcntl(events_->fd, F_SETFL, fcntl(events_->fd, F_GETFL) | O_NONBLOCK);  // another thread may have taken what this one was woken for
  service_ = std::make_unique<Service>(*this);
  rdma_cm_id* listener = nullptr;
  WEFT_MPI_TRY(Listen(&listener));
  ibv_device_attr attributes{};
  if (ibv_query_device(context_, &attributes) != 0) return DeviceFailed("ibv_query_device", errno);
  max_reads_ = static_cast<uint32_t>(std::clamp(attributes.max_qp_init_rd_atom, 1, 64));
  ibv_port_attr port{};
  if (ibv_query_port(context_, listener->port_num == 0 ? 1 : listener->port_num, &port) == 0 &&
      port.max_msg_sz >= 4096) {
    max_message_ = std::min<uint64_t>(max_message_, port.max_msg_sz / 4096 * 4096);
  }
  domain_ = ibv_alloc_pd(context_);
  if (domain_ == nullptr) return DeviceFailed("ibv_alloc_pd", errno);
  channel_ = ibv_create_comp_channel(context_);
  if (channel_ == nullptr) return DeviceFailed("ibv_create_comp_channel", errno);
  fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  most_entries_ = attributes.max_cqe;
  WEFT_MPI_TRY(MakeQueue(kFirstLinks));
  // Linux's siw, for one, resizes none: there it is made for all at once.
  if (size > size_t{kFirstLinks} && ibv_resize_cq(queue_, queue_->cqe) != 0) {
    ibv_destroy_cq(std::exchange(queue_, nullptr));
    WEFT_MPI_TRY(MakeQueue(static_cast<int>(size)));
  }
  is_weft_ = IsWeft(context_);
  vouches_for_atomics_ =
      wants_atomics && (attributes.atomic_cap == IBV_ATOMIC_GLOB || (is_weft_ && attributes.atomic_cap != IBV_ATOMIC_NONE));
  registrations_ = std::make_unique<Registrations>(domain_, is_weft_);
  bounce_ = std::make_unique<BufferPool>(domain_, kBounceBytes, 4, 32, kSinkAccess);
  messages_ = std::make_unique<BufferPool>(domain_, kSlotBytes, 4, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE);
  words_ = std::make_unique<BufferPool>(domain_, sizeof(uint64_t), kWordsPerChunk, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE);
  proof_mr_ = ibv_reg_mr(domain_, proof_, sizeof proof_, kSinkAccess);
  if (proof_mr_ == nullptr) return DeviceFailed("memory for one-sided operations cannot be registered", errno);
  return service_->Start(listener, attributes);
}

Error Device::MakeQueue(int links) {
  queue_ = ibv_create_cq(context_, std::min(most_entries_, kCompletionsPerLink * links), nullptr, channel_, 0);
  return queue_ == nullptr ? DeviceFailed("ibv_create_cq", errno) : Error();
}

// For one more link. It may use what it needs of the RNIC's memory only then: a job of many ranks in which few talk
// takes little.
Error Device::MakeRoomInQueue() {
  const int needed = kCompletionsPerLink * (made_ + 1);
  if (needed > queue_->cqe) {
    const int error = ibv_resize_cq(queue_, std::min(most_entries_, std::max(needed, 2 * queue_->cqe)));
    if (error != 0 || needed > queue_->cqe) {
      return DeviceFailed("a completion queue of " + std::to_string(queue_->cqe) + " entries cannot grow to " +
                        std::to_string(needed) + ", for " + std::to_string(made_ + 1) + " targets",
                    error == 0 ? ENOSPC : error);
    }
  }
  ++made_;
  return {};
}

Error Device::Listen(rdma_cm_id** listener) {
  Error first;
  for (const SocketAddress& candidate : ListenAddresses(ThisJob().hosts, InterfaceAddresses(), ThisJob().one_host)) {
    Error error = StartOn(candidate, listener);
    if (error.ok()) return {};
    if (first.ok()) first = std::move(error);
  }
  return first.ok() ? Error(MPI_ERR_OTHER, "this host has no address to listen on for RDMA") : std::move(first);
}

Error Device::StartOn(const SocketAddress& address, rdma_cm_id** listener) {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(service_->events(), &id, nullptr, RDMA_PS_TCP) != 0) return DeviceFailed("rdma_create_id", errno);
  const bool bound = rdma_bind_addr(id, const_cast<sockaddr*>(address.get())) == 0;
  if (bound && (context_ = DeviceOf(id)) != nullptr && rdma_listen(id, 128) == 0) {
    address_ = *SocketAddress::From(rdma_get_local_addr(id), address.length());
    *listener = id;
    return {};
  }
  const int error = errno == 0 ? ENODEV : errno;
  rdma_destroy_id(id);
  return DeviceFailed("listening for RDMA connections on " + address.ToString(), error);
}

Device::~Device() {
  if (service_ != nullptr) service_->Stop();
  links_.clear();
  registrations_.reset();
  bounce_.reset();
  messages_.reset();
  words_.reset();
  if (proof_mr_ != nullptr) ibv_dereg_mr(proof_mr_);
  service_.reset();
  if (queue_ != nullptr) ibv_destroy_cq(queue_);
  if (channel_ != nullptr) ibv_destroy_comp_channel(channel_);
  if (domain_ != nullptr) ibv_dealloc_pd(domain_);
  if (events_ != nullptr) rdma_destroy_event_channel(events_);
}

void Device::MakeRoomFor(ProcessId process) {
  const size_t size = static_cast<size_t>(process) + 1;
  if (size <= links_.size()) return;
  addresses_.resize(size);
  nonces_.resize(size);
  links_.resize(size);
  std::lock_guard lock(service_->mutex());
  while (dead_.size() < size) dead_.emplace_back(false);
}

void Device::Forget(ProcessId process) {
  const auto at = static_cast<size_t>(process);
  service_->Forget(process);
  if (at >= links_.size()) return;
  if (links_[at] != nullptr) {
    links_[at].reset();
    --made_;
  }
  dead_[at] = false;
}

void Device::SetAddress(ProcessId process, const SocketAddress& address, const Nonce& nonce) {
  MakeRoomFor(process);
  addresses_[static_cast<size_t>(process)] = address;
  nonces_[static_cast<size_t>(process)] = nonce;
}

Error Device::Prepare(ProcessId process) {
  auto& link = links_[static_cast<size_t>(process)];
  if (link != nullptr) return {};
  WEFT_MPI_TRY(MakeRoomInQueue());
  link = std::make_unique<Link>(*this, process);
  link->StartConnect(address_, addresses_[static_cast<size_t>(process)]);
  return {};
}

Error Device::Find(ProcessId process, Link** found) {
  const auto& link = links_[static_cast<size_t>(process)];
  if (link == nullptr || !link->up()) [[unlikely]]
    WEFT_MPI_TRY(Connect(process));
  *found = link.get();
  return {};
}

// Tries again for kPatience where room is wanting, here or there: who has none is not dead. A link that was never up is
// forgotten, and the next call makes another. The lock is let go of meanwhile, so that other threads may connect to the same process: one of them
// may forget the link, and each makes another then.
Error Device::Connect(ProcessId process) {
  const auto start = Clock::now();
  for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    WEFT_MPI_TRY(Prepare(process));
    AwaitConnected(process);
    const Link* const link = Existing(process);
    if (link == nullptr) {
      if (IsDead(process)) return Error(ClassOfGone(process), "the RDMA connection to " + ThisJob().processes.Describe(process) + " is broken");
      continue;
    }
    if (!link->unreachable()) return link->broken() ? link->failure() : Error();
    const Error error = link->failure();
    const bool wants_room = link->wants_room();
    links_[static_cast<size_t>(process)].reset();
    --made_;
    if (!wants_room || IsDead(process)) return error;
    if (Clock::now() - start >= kPatience) {
      return Error(error.mpi_class(), error.message() + ", for " + std::to_string(kPatience.count()) + " s");
    }
    {
      const UnlockGuard unlocked;
      std::this_thread::sleep_for(pause);
    }
    Progress::Poll();
  }
}

// Events of all links that wait to be connected.
bool Device::TakeEvents() {
  bool any = false;
  for (rdma_cm_event* event = nullptr; rdma_get_cm_event(events_, &event) == 0; any = true) {
    static_cast<Link*>(event->id->context)->OnEvent(*event);
    rdma_ack_cm_event(event);
  }
  return any;
}

// The others' services accept without help of their programs, and ours needs none of this thread. A target may be stopped, and does not answer for
// as long as it is: nothing is held while this thread waits.
void Device::AwaitConnected(ProcessId process) {
  for (auto silent_since = Clock::now();;) {
    Link* const link = Existing(process);
    if (link == nullptr || !link->connecting()) return;
    if (link->greeting()) return AwaitGreeted(process);
    if (TakeEvents()) {
      silent_since = Clock::now();
      continue;
    }
    if (IsDead(process) || Clock::now() - silent_since >= kPatience) return GiveUp(*link);
    const UnlockGuard unlocked;
    pollfd ready{events_->fd, POLLIN, 0};
    (void)poll(&ready, 1, kConnectStepMs);
  }
}

void Device::GiveUp(Link& link) { link.Break("it does not answer at " + addresses_[static_cast<size_t>(link.process())].ToString()); }

// Its completion queue may be armed for another thread of the program: looks instead of sleeping.
void Device::AwaitGreeted(ProcessId process) {
  const auto start = Clock::now();
  auto nudge = start + kFirstNudge;
  for (auto pause = kFirstNudge;;) {
    Link* const link = Existing(process);
    if (link == nullptr || !link->greeting()) return;
    if (PollLinks()) continue;
    const auto now = Clock::now();
    if (IsDead(process) || now - start >= kPatience) return GiveUp(*link);
    if (now >= nudge) {
      link->Nudge();
      pause = std::min(2 * pause, kLongestPause);
      nudge = now + pause;
    }
    const UnlockGuard unlocked;
    std::this_thread::sleep_for(kGreetingStep);
  }
}

bool Device::PollLinks() {
  constexpr int kBatch = 16;
  ibv_wc completions[kBatch];
  bool any = false;
  for (;;) {
    const int count = ibv_poll_cq(queue_, kBatch, completions);
    for (int i = 0; i < count; ++i) {
      const uint64_t process = RequestId::ProcessOf(completions[i].wr_id);
      if (process < links_.size() && links_[process] != nullptr) links_[process]->OnCompletion(completions[i]);
    }
    any |= count > 0;
    if (count < kBatch) return any;
  }
}

bool Device::Poll() {
  // Messages that the service's thread took: this thread takes the next ones, and needs no wake-up for each.
  if (const uint32_t batches = service_->batches(); std::exchange(batches_seen_, batches) != batches) lively_polls_ = kLivelyPolls;
  if (armed_) {
    bool event = false;
    ibv_cq* queue;
    void* context;
    for (; ibv_get_cq_event(channel_, &queue, &context) == 0; event = true) ibv_ack_cq_events(queue, 1);
    // With several threads another one may still sleep: it stays armed, and when its event was taken here, it is woken.
    if (event || !LibraryLock::threads_enabled()) {
      armed_ = false;
      service_->SetWaiter(false);
      Progress::Wake();
    }
  } else if (waiting_ == 0 && expected == 0 && lively_polls_ == 0 && ++idle_polls_ % kIdlePolls != 0) {
    return false;
  }
  if (lively_polls_ != 0) --lively_polls_;
  // What one of the two found may end the wait: the other one has the next look.
  bool any = links_first_ ? PollLinks() : service_->TryPoll();
  if (any) {
    links_first_ = !links_first_;
  } else {
    any = links_first_ ? service_->TryPoll() : PollLinks();
  }
  service_->SetLively(any || lively_polls_ != 0);
  if (any) {
    lively_polls_ = kLivelyPolls;
    Progress::Wake();  // other threads may wait for what this one found
  }
  return any;
}

bool Device::Arm() {
  for (auto& link : links_) {
    if (link != nullptr) (void)link->Ring();
  }
  armed_ = true;
  service_->SetWaiter(true);
  ibv_req_notify_cq(queue_, 0);
  const bool links = PollLinks();
  if (!service_->TryPoll() && !links) return true;
  Progress::Wake();
  return false;
}

void Device::SetAttended(bool attended) { service_->SetAttended(attended); }

}  // namespace weft::mpi::rma
