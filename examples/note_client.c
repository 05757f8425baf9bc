/* note_client HOST PORT TEXT: writes TEXT into the memory of note_server, reads it back, and says when it is done. */
#include "note.h"

int main(int argc, char** argv) {
  if (argc != 4 || strlen(argv[3]) >= NOTE_BYTES) {
    fprintf(stderr, "usage: note_client HOST PORT TEXT   (TEXT below %d bytes)\n", NOTE_BYTES);
    return 2;
  }

  /* 1. Resolve and connect. The server's private data comes with the event that says "established". One RDMA Read may be
   *    outstanding in each direction (initiator_depth: ours, responder_resources: the server's). */
  struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *address;
  struct ibv_qp_init_attr qp = note_qp();
  struct rdma_cm_id* id;
  give_up_if(rdma_getaddrinfo(argv[1], argv[2], &hints, &address) != 0, "rdma_getaddrinfo");
  give_up_if(rdma_create_ep(&id, address, NULL, &qp) != 0, "rdma_create_ep");
  struct rdma_conn_param connect = {.responder_resources = 1, .initiator_depth = 1};
  give_up_if(rdma_connect(id, &connect) != 0, "rdma_connect");
  struct note_location location;
  if (id->event->param.conn.private_data_len < sizeof location) {
    fprintf(stderr, "note_client: the peer is no note_server\n");
    return 1;
  }
  memcpy(&location, id->event->param.conn.private_data, sizeof location);

  /* 2. Two buffers. The one that an RDMA Read fills needs REMOTE_WRITE on iWARP, where the answer comes as tagged data
   *    from the peer; InfiniBand would not ask for it. */
  static char text[NOTE_BYTES], echo[NOTE_BYTES];
  strcpy(text, argv[3]);
  size_t bytes = strlen(text) + 1;
  struct ibv_mr* text_mr = ibv_reg_mr(id->pd, text, sizeof text, IBV_ACCESS_LOCAL_WRITE);
  struct ibv_mr* echo_mr = ibv_reg_mr(id->pd, echo, sizeof echo, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  give_up_if(text_mr == NULL || echo_mr == NULL, "ibv_reg_mr");

  /* 3. Write, read back, compare. The Read follows the Write on the same queue pair, so it sees what was written. */
  give_up_if(rdma_post_write(id, NULL, text, bytes, text_mr, 0, location.address, location.rkey) != 0, "RDMA Write");
  await(rdma_get_send_comp, id, "RDMA Write");
  give_up_if(rdma_post_read(id, NULL, echo, bytes, echo_mr, 0, location.address, location.rkey) != 0, "RDMA Read");
  await(rdma_get_send_comp, id, "RDMA Read");
  if (strcmp(text, echo) != 0) {
    fprintf(stderr, "note_client: read back something else: %.*s\n", NOTE_BYTES, echo);
    return 1;
  }
  printf("note_client: wrote %zu bytes and read the same back\n", bytes);

  /* 4. An empty Send: "done". */
  give_up_if(rdma_post_send(id, NULL, text, 0, text_mr, 0) != 0, "Send");
  await(rdma_get_send_comp, id, "Send");

  rdma_disconnect(id);
  rdma_dereg_mr(text_mr);
  rdma_dereg_mr(echo_mr);
  rdma_destroy_ep(id);
  rdma_freeaddrinfo(address);
  return 0;
}
