#include "tools/weft/self_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

namespace weft::tool {
namespace {

constexpr int kTimeoutMs = 5000;

struct Cm {
  rdma_event_channel* (*create_event_channel)();
  void (*destroy_event_channel)(rdma_event_channel*);
  int (*create_id)(rdma_event_channel*, rdma_cm_id**, void*, rdma_port_space);
  int (*destroy_id)(rdma_cm_id*);
  int (*bind_addr)(rdma_cm_id*, sockaddr*);
  int (*listen)(rdma_cm_id*, int);
  uint16_t (*get_src_port)(rdma_cm_id*);
  int (*resolve_addr)(rdma_cm_id*, sockaddr*, sockaddr*, int);
  int (*resolve_route)(rdma_cm_id*, int);
  int (*create_qp)(rdma_cm_id*, ibv_pd*, ibv_qp_init_attr*);
  void (*destroy_qp)(rdma_cm_id*);
  int (*connect)(rdma_cm_id*, rdma_conn_param*);
  int (*accept)(rdma_cm_id*, rdma_conn_param*);
  int (*disconnect)(rdma_cm_id*);
  int (*get_cm_event)(rdma_event_channel*, rdma_cm_event**);
  int (*ack_cm_event)(rdma_cm_event*);
  const char* (*event_str)(rdma_cm_event_type);
};

bool Load(const Library& library, Cm* cm) {
  return library.Find("rdma_create_event_channel", &cm->create_event_channel) &&
         library.Find("rdma_destroy_event_channel", &cm->destroy_event_channel) &&
         library.Find("rdma_create_id", &cm->create_id) && library.Find("rdma_destroy_id", &cm->destroy_id) &&
         library.Find("rdma_bind_addr", &cm->bind_addr) && library.Find("rdma_listen", &cm->listen) &&
         library.Find("rdma_get_src_port", &cm->get_src_port) && library.Find("rdma_resolve_addr", &cm->resolve_addr) &&
         library.Find("rdma_resolve_route", &cm->resolve_route) && library.Find("rdma_create_qp", &cm->create_qp) &&
         library.Find("rdma_destroy_qp", &cm->destroy_qp) && library.Find("rdma_connect", &cm->connect) &&
         library.Find("rdma_accept", &cm->accept) && library.Find("rdma_disconnect", &cm->disconnect) &&
         library.Find("rdma_get_cm_event", &cm->get_cm_event) && library.Find("rdma_ack_cm_event", &cm->ack_cm_event) &&
         library.Find("rdma_event_str", &cm->event_str);
}

// A connection of this process to itself, driven by the events of one channel.
class Loopback {
 public:
  explicit Loopback(const Cm& cm) : cm_(cm) {}
  ~Loopback() {
    for (rdma_cm_id* id : {client_, server_}) {
      if (id == nullptr) continue;
      if (id->qp != nullptr) cm_.destroy_qp(id);
      cm_.destroy_id(id);
    }
    if (listener_ != nullptr) cm_.destroy_id(listener_);
    if (channel_ != nullptr) cm_.destroy_event_channel(channel_);
  }

  std::string Run() {
    if (std::string problem = Start(); !problem.empty()) return problem;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kTimeoutMs);
    while (disconnected_ < 2) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      pollfd ready{channel_->fd, POLLIN, 0};
      if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) <= 0) {
        return "no event within " + std::to_string(kTimeoutMs) + " ms after " + last_;
      }
      rdma_cm_event* event = nullptr;
      if (cm_.get_cm_event(channel_, &event) != 0) return Failed("rdma_get_cm_event");
      // Destroying an id waits for its events to be acknowledged, and nothing here is needed of them but this.
      rdma_cm_id* id = event->id;
      const rdma_cm_event_type type = event->event;
      const int status = event->status;
      cm_.ack_cm_event(event);
      last_ = cm_.event_str(type);
      if (std::string problem = Handle(id, type, status); !problem.empty()) return problem;
    }
    return "";
  }

 private:
  std::string Failed(const char* call) const { return std::string(call) + ": " + std::strerror(errno); }

  std::string Start() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    channel_ = cm_.create_event_channel();
    if (channel_ == nullptr) return Failed("rdma_create_event_channel");
    if (cm_.create_id(channel_, &listener_, nullptr, RDMA_PS_TCP) != 0) return Failed("rdma_create_id");
    if (cm_.bind_addr(listener_, generic) != 0) return Failed("rdma_bind_addr(127.0.0.1)");
    if (cm_.listen(listener_, 1) != 0) return Failed("rdma_listen(127.0.0.1)");
    address.sin_port = cm_.get_src_port(listener_);
    if (cm_.create_id(channel_, &client_, nullptr, RDMA_PS_TCP) != 0) return Failed("rdma_create_id");
    if (cm_.resolve_addr(client_, nullptr, generic, kTimeoutMs) != 0) return Failed("rdma_resolve_addr(127.0.0.1)");
    return "";
  }

  std::string CreateQp(rdma_cm_id* id) {
    ibv_qp_init_attr attributes{};
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    return cm_.create_qp(id, nullptr, &attributes) == 0 ? "" : Failed("rdma_create_qp");
  }

  std::string Handle(rdma_cm_id* id, rdma_cm_event_type type, int status) {
    rdma_conn_param param{};
    std::string problem;
    switch (type) {
      case RDMA_CM_EVENT_ADDR_RESOLVED:
        return cm_.resolve_route(id, kTimeoutMs) == 0 ? "" : Failed("rdma_resolve_route");
      case RDMA_CM_EVENT_ROUTE_RESOLVED:
        problem = CreateQp(id);
        if (problem.empty() && cm_.connect(id, &param) != 0) problem = Failed("rdma_connect");
        return problem;
      case RDMA_CM_EVENT_CONNECT_REQUEST:
        server_ = id;
        problem = CreateQp(id);
        if (problem.empty() && cm_.accept(id, &param) != 0) problem = Failed("rdma_accept");
        return problem;
      case RDMA_CM_EVENT_ESTABLISHED:
        if (++established_ == 2 && cm_.disconnect(client_) != 0) return Failed("rdma_disconnect");
        return "";
      case RDMA_CM_EVENT_DISCONNECTED:
        ++disconnected_;
        return "";
      case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        return "";
      default:
        return std::string("unexpected ") + cm_.event_str(type) + ", status " + std::to_string(status);
    }
  }

  const Cm& cm_;
  rdma_event_channel* channel_ = nullptr;
  rdma_cm_id* listener_ = nullptr;
  rdma_cm_id* client_ = nullptr;
  rdma_cm_id* server_ = nullptr;
  int established_ = 0;
  int disconnected_ = 0;
  std::string last_ = "rdma_resolve_addr";
};

}  // namespace

std::string LoopbackSelfTest(const Library& librdmacm) {
  Cm cm{};
  if (!Load(librdmacm, &cm)) return librdmacm.Path() + " lacks a basic rdma_cm call";
  return Loopback(cm).Run();
}

}  // namespace weft::tool
