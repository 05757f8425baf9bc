/* What the two note_* examples share: the message in rdma_cm's private data, and one way to give up. */
#ifndef EXAMPLES_NOTE_H_
#define EXAMPLES_NOTE_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOTE_BYTES 4096

/* Where the client may write. In a program for machines of different byte order these would be in network order. */
struct note_location {
  uint64_t address;
  uint32_t rkey;
  uint32_t bytes;
};

static inline void give_up_if(int failed, const char* what) {
  if (!failed) return;
  perror(what);
  exit(1);
}

/* Waits for the completion of one work request (rdma_get_send_comp or rdma_get_recv_comp) and demands success. */
static inline void await(int (*get)(struct rdma_cm_id*, struct ibv_wc*), struct rdma_cm_id* id, const char* what) {
  struct ibv_wc completion;
  give_up_if(get(id, &completion) != 1, what);
  if (completion.status == IBV_WC_SUCCESS) return;
  fprintf(stderr, "%s: %s\n", what, ibv_wc_status_str(completion.status));
  exit(1);
}

/* One send and one receive at a time, each with one buffer; rdma_cm makes the queue pair and its completion queues. */
static inline struct ibv_qp_init_attr note_qp(void) {
  struct ibv_qp_init_attr attr = {
      .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
      .qp_type = IBV_QPT_RC,
      .sq_sig_all = 1, /* every request gives a completion */
  };
  return attr;
}

#endif
