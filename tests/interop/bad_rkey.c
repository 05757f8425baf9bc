/* bad_rkey: fails on purpose. Uses public verbs and rdma_cm only, so that the same file runs on Weft and, in the guest, on siw.
 *
 *   bad_rkey server PORT                 lends 4 KiB to one client, waits for the end of the connection, then reports
 *   bad_rkey client HOST PORT write|read one good RDMA Write and Read, then one with a wrong rkey, then reports
 *
 * The report is one line per fact, for a test to read. Exit status 0: the connection came up, the good accesses passed, and
 * the bad one ended the connection at this side too. */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBytes = 4096, kTimeoutMs = 20000 };

struct location {
  uint64_t address;
  uint32_t rkey;
};

static char memory[kBytes];
static struct ibv_mr* mr;
static struct rdma_event_channel* channel;
static struct rdma_cm_id* id;

static void must(int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "bad_rkey: %s: %s\n", what, strerror(errno));
  exit(1);
}

/* The next event, acknowledged; *data gets its private data. A DISCONNECTED event may come at any time. */
static enum rdma_cm_event_type next_event(struct rdma_cm_id** of, struct location* data) {
  struct pollfd ready = {.fd = channel->fd, .events = POLLIN};
  struct rdma_cm_event* event;
  must(poll(&ready, 1, kTimeoutMs) == 1, "no event in time");
  must(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event");
  enum rdma_cm_event_type type = event->event;
  if (of != NULL) *of = event->id;
  if (data != NULL && event->param.conn.private_data_len >= sizeof *data) {
    memcpy(data, event->param.conn.private_data, sizeof *data);
  }
  printf("event: %s, status %d\n", rdma_event_str(type), event->status);
  fflush(stdout);
  rdma_ack_cm_event(event);
  return type;
}

static void expect_event(enum rdma_cm_event_type wanted, struct rdma_cm_id** of, struct location* data) {
  must(next_event(of, data) == wanted, rdma_event_str(wanted));
}

static void prepare(void) {
  struct ibv_qp_init_attr attr = {
      .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
      .qp_type = IBV_QPT_RC,
      .sq_sig_all = 1,
  };
  must(rdma_create_qp(id, NULL, &attr) == 0, "rdma_create_qp");
  mr = ibv_reg_mr(id->pd, memory, sizeof memory,
                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  must(mr != NULL, "ibv_reg_mr");
  /* A posted receive shows how the connection ends: flushed. */
  must(rdma_post_recv(id, NULL, memory, 1, mr) == 0, "rdma_post_recv");
}

/* Waits for one completion of `cq`. */
/* False: there was none within milliseconds. */
static int completes(struct ibv_cq* cq, const char* what, int milliseconds, enum ibv_wc_status* status) {
  struct ibv_wc wc;
  for (int waited = 0; waited < milliseconds; ++waited) {
    int n = ibv_poll_cq(cq, 1, &wc);
    must(n >= 0, "ibv_poll_cq");
    if (n == 1) {
      printf("completion of %s: %s\n", what, ibv_wc_status_str(wc.status));
      fflush(stdout);
      *status = wc.status;
      return 1;
    }
    poll(NULL, 0, 1);
  }
  return 0;
}

static enum ibv_wc_status completion(struct ibv_cq* cq, const char* what) {
  enum ibv_wc_status status = IBV_WC_SUCCESS;
  must(completes(cq, what, kTimeoutMs, &status), what);
  return status;
}

/* The end of the connection, which the other side brought about. */
static void await_end(void) {
  expect_event(RDMA_CM_EVENT_DISCONNECTED, NULL, NULL);
  rdma_disconnect(id); /* siw flushes the queues of a terminated queue pair only then */
  must(completion(id->recv_cq, "the receive") == IBV_WC_WR_FLUSH_ERR, "the receive was not flushed");
}

static int serve(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  struct rdma_cm_id* listener;
  must(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
  must(rdma_bind_addr(listener, (struct sockaddr*)&address) == 0, "rdma_bind_addr");
  must(rdma_listen(listener, 1) == 0, "rdma_listen");
  expect_event(RDMA_CM_EVENT_CONNECT_REQUEST, &id, NULL);
  prepare();
  struct location location = {.address = (uintptr_t)memory, .rkey = mr->rkey};
  struct rdma_conn_param param = {
      .private_data = &location, .private_data_len = sizeof location, .responder_resources = 1, .initiator_depth = 1};
  must(rdma_accept(id, &param) == 0, "rdma_accept");
  expect_event(RDMA_CM_EVENT_ESTABLISHED, NULL, NULL);
  await_end();
  printf("memory: %s\n", memory);
  return 0;
}

static int attack(const char* host, int port, int reading) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  must(inet_pton(AF_INET, host, &address.sin_addr) == 1, host);
  must(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
  must(rdma_resolve_addr(id, NULL, (struct sockaddr*)&address, kTimeoutMs) == 0, "rdma_resolve_addr");
  expect_event(RDMA_CM_EVENT_ADDR_RESOLVED, NULL, NULL);
  must(rdma_resolve_route(id, kTimeoutMs) == 0, "rdma_resolve_route");
  expect_event(RDMA_CM_EVENT_ROUTE_RESOLVED, NULL, NULL);
  prepare();
  struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
  must(rdma_connect(id, &param) == 0, "rdma_connect");
  struct location at = {0};
  expect_event(RDMA_CM_EVENT_ESTABLISHED, NULL, &at);

  strcpy(memory, "good");
  must(rdma_post_write(id, NULL, memory, 5, mr, 0, at.address, at.rkey) == 0, "rdma_post_write");
  must(completion(id->send_cq, "the good Write") == IBV_WC_SUCCESS, "the good Write failed");
  must(rdma_post_read(id, NULL, memory + 8, 5, mr, 0, at.address, at.rkey) == 0, "rdma_post_read");
  must(completion(id->send_cq, "the good Read") == IBV_WC_SUCCESS, "the good Read failed");
  must(memcmp(memory + 8, "good", 5) == 0, "the good Read brought something else");

  strcpy(memory, "evil");
  uint32_t wrong = at.rkey ^ 0x5a5a00;
  int last = 0;
  int rc = reading ? rdma_post_read(id, NULL, memory + 8, 5, mr, 0, at.address, wrong)
                   : rdma_post_write(id, NULL, memory, 5, mr, 0, at.address, wrong);
  must(rc == 0, "posting the bad access");
  if (!reading) {
    /* A bad Write may complete before the peer has seen it; a Read behind it cannot. It may be refused: too late. */
    enum ibv_wc_status status = completion(id->send_cq, "the bad Write");
    if (status == IBV_WC_SUCCESS && rdma_post_read(id, NULL, memory + 8, 5, mr, 0, at.address, at.rkey) == 0) last = 1;
  }
  await_end();
  if (reading) must(completion(id->send_cq, "the bad Read") != IBV_WC_SUCCESS, "the bad access went unnoticed");
  /* siw now and then loses a Read that is posted as the stream ends: who runs this says whether it may. */
  enum ibv_wc_status status = IBV_WC_WR_FLUSH_ERR;
  if (last && !completes(id->send_cq, "the last Read", 2000, &status)) printf("completion of the last Read: none\n");
  must(status != IBV_WC_SUCCESS, "the bad access went unnoticed");
  return 0;
}

int main(int argc, char** argv) {
  channel = rdma_create_event_channel();
  must(channel != NULL, "rdma_create_event_channel");
  if (argc == 3 && strcmp(argv[1], "server") == 0) return serve(atoi(argv[2]));
  if (argc == 5 && strcmp(argv[1], "client") == 0) return attack(argv[2], atoi(argv[3]), strcmp(argv[4], "read") == 0);
  fprintf(stderr, "usage: bad_rkey server PORT | bad_rkey client HOST PORT write|read\n");
  return 2;
}
