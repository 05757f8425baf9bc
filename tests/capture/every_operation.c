/* every_operation: one connection on which every RDMAP operation happens in a known order, for a capture to be compared with.
 *
 *   every_operation server PORT
 *   every_operation client HOST PORT
 *
 * The client, for each size: Send, Send with Solicited Event, RDMA Write, RDMA Read. Then Send with Invalidate, Send with
 * Solicited Event and Invalidate, and a Read with a wrong rkey, which the server answers with a Terminate. */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLargest = 70000, kReceives = 16 };
static const uint32_t kSizes[] = {0, 1, 7, 1000, 5000, kLargest}; /* capture_test.py has the same list */
enum { kInvalidated = 100 };                                      /* bytes of the Sends with Invalidate */

struct location {
  uint64_t address;
  uint32_t rkey;
  uint32_t to_invalidate[2];
};

static char memory[kLargest], other[2][64];
static struct ibv_mr* mr;

static void must(int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "every_operation: %s: %s\n", what, strerror(errno));
  exit(1);
}

static struct ibv_qp_init_attr qp_attributes(void) {
  struct ibv_qp_init_attr attr = {
      .cap = {.max_send_wr = 4, .max_recv_wr = kReceives, .max_send_sge = 1, .max_recv_sge = 1},
      .qp_type = IBV_QPT_RC,
      .sq_sig_all = 1,
  };
  return attr;
}

static struct ibv_mr* registered(struct rdma_cm_id* id, void* at, size_t bytes) {
  struct ibv_mr* region = ibv_reg_mr(
      id->pd, at, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND);
  must(region != NULL, "ibv_reg_mr");
  return region;
}

/* Says between the two programs that the server's windows are bound, beside the connection, whose messages are counted. */
static void say_bound(const char* port, int wait) {
  char name[64];
  snprintf(name, sizeof name, "/every_operation-%s", port);
  sem_t* semaphore = sem_open(name, O_CREAT, 0600, 0);
  must(semaphore != SEM_FAILED, "sem_open");
  must((wait ? sem_wait(semaphore) : sem_post(semaphore)) == 0, "semaphore");
  if (wait) sem_unlink(name);
}

static void bind_windows(struct rdma_cm_id* id, struct ibv_mw* windows[2], struct ibv_mr* regions[2], const uint32_t keys[2]) {
  for (int i = 0; i < 2; ++i) {
    struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW}, *bad;
    wr.bind_mw.mw = windows[i];
    wr.bind_mw.rkey = keys[i];
    wr.bind_mw.bind_info.mr = regions[i];
    wr.bind_mw.bind_info.addr = (uintptr_t)other[i];
    wr.bind_mw.bind_info.length = sizeof other[i];
    wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
    struct ibv_wc wc;
    errno = ibv_post_send(id->qp, &wr, &bad);
    must(errno == 0, "ibv_post_send");
    must(rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS, "binding a window");
  }
}

static int serve(const char* port) {
  struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *address;
  struct ibv_qp_init_attr attr = qp_attributes();
  struct rdma_cm_id *listener, *id;
  must(rdma_getaddrinfo(NULL, port, &hints, &address) == 0, "rdma_getaddrinfo");
  must(rdma_create_ep(&listener, address, NULL, &attr) == 0, "rdma_create_ep");
  must(rdma_listen(listener, 1) == 0, "rdma_listen");
  must(rdma_get_request(listener, &id) == 0, "rdma_get_request");
  mr = registered(id, memory, sizeof memory);
  struct location location = {.address = (uintptr_t)memory, .rkey = mr->rkey};
  struct ibv_mw* windows[2];
  struct ibv_mr* regions[2];
  for (int i = 0; i < 2; ++i) {
    regions[i] = registered(id, other[i], sizeof other[i]);
    windows[i] = ibv_alloc_mw(id->pd, IBV_MW_TYPE_2);
    must(windows[i] != NULL, "ibv_alloc_mw");
    location.to_invalidate[i] = ibv_inc_rkey(windows[i]->rkey);
  }
  for (int i = 0; i < kReceives; ++i) must(rdma_post_recv(id, NULL, memory, sizeof memory, mr) == 0, "rdma_post_recv");
  struct rdma_conn_param param = {
      .private_data = &location, .private_data_len = sizeof location, .responder_resources = 1, .initiator_depth = 1};
  must(rdma_accept(id, &param) == 0, "rdma_accept");
  bind_windows(id, windows, regions, location.to_invalidate);
  say_bound(port, /*wait=*/0);
  /* Each receive with what came in it, until the end flushes one. */
  for (;;) {
    struct ibv_wc wc;
    must(rdma_get_recv_comp(id, &wc) == 1, "rdma_get_recv_comp");
    if (wc.status != IBV_WC_SUCCESS) break;
    printf("received %u%s", wc.byte_len, wc.wc_flags & IBV_WC_WITH_INV ? " and invalidated" : "");
    if (wc.wc_flags & IBV_WC_WITH_INV) {
      must(wc.invalidated_rkey == location.to_invalidate[0] || wc.invalidated_rkey == location.to_invalidate[1],
           "another rkey was invalidated");
    }
    printf("\n");
  }
  return 0;
}

static enum ibv_wc_status perform(struct rdma_cm_id* id, enum ibv_wr_opcode opcode, unsigned flags, uint32_t length,
                                  uint64_t remote, uint32_t rkey) {
  struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = length, .lkey = mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = flags}, *bad;
  if (opcode == IBV_WR_SEND_WITH_INV) {
    wr.invalidate_rkey = rkey;
  } else if (opcode != IBV_WR_SEND) {
    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = rkey;
  }
  struct ibv_wc wc;
  errno = ibv_post_send(id->qp, &wr, &bad);
  must(errno == 0, "ibv_post_send");
  must(rdma_get_send_comp(id, &wc) == 1, "rdma_get_send_comp");
  return wc.status;
}

static int drive(const char* host, const char* port) {
  struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *address;
  struct ibv_qp_init_attr attr = qp_attributes();
  struct rdma_cm_id* id;
  must(rdma_getaddrinfo(host, port, &hints, &address) == 0, "rdma_getaddrinfo");
  must(rdma_create_ep(&id, address, NULL, &attr) == 0, "rdma_create_ep");
  mr = registered(id, memory, sizeof memory);
  struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
  must(rdma_connect(id, &param) == 0, "rdma_connect");
  struct location at;
  must(id->event->param.conn.private_data_len >= sizeof at, "private data");
  memcpy(&at, id->event->param.conn.private_data, sizeof at);

  for (size_t i = 0; i < sizeof kSizes / sizeof *kSizes; ++i) {
    const uint32_t n = kSizes[i];
    must(perform(id, IBV_WR_SEND, 0, n, 0, 0) == IBV_WC_SUCCESS, "Send");
    must(perform(id, IBV_WR_SEND, IBV_SEND_SOLICITED, n, 0, 0) == IBV_WC_SUCCESS, "Send with Solicited Event");
    must(perform(id, IBV_WR_RDMA_WRITE, 0, n, at.address, at.rkey) == IBV_WC_SUCCESS, "RDMA Write");
    must(perform(id, IBV_WR_RDMA_READ, 0, n, at.address, at.rkey) == IBV_WC_SUCCESS, "RDMA Read");
  }
  say_bound(port, /*wait=*/1);
  must(perform(id, IBV_WR_SEND_WITH_INV, 0, kInvalidated, 0, at.to_invalidate[0]) == IBV_WC_SUCCESS,
       "Send with Invalidate");
  must(perform(id, IBV_WR_SEND_WITH_INV, IBV_SEND_SOLICITED, kInvalidated, 0, at.to_invalidate[1]) == IBV_WC_SUCCESS,
       "Send with Solicited Event and Invalidate");
  must(perform(id, IBV_WR_RDMA_READ, 0, 8, at.address, at.rkey ^ 0x5a5a00) != IBV_WC_SUCCESS, "the bad Read passed");
  return 0;
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc == 3 && strcmp(argv[1], "server") == 0) return serve(argv[2]);
  if (argc == 4 && strcmp(argv[1], "client") == 0) return drive(argv[2], argv[3]);
  fprintf(stderr, "usage: every_operation server PORT | every_operation client HOST PORT\n");
  return 2;
}
