/* note_server PORT: lends a piece of its memory to one client, and prints what the client wrote there.
 *
 * The client reaches the memory without this program's help (RDMA Write and Read); the only thing this program waits for
 * is the empty Send with which the client says that it is done. See note_client.c for the other half. */
#include "note.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: note_server PORT\n");
    return 2;
  }

  /* 1. Listen. With RAI_PASSIVE and no node name the address is "any". The queue pair described here is made for each
   *    connection request; without an event channel all rdma_* calls wait until they are done. */
  struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *address;
  struct ibv_qp_init_attr qp = note_qp();
  struct rdma_cm_id *listener, *id;
  give_up_if(rdma_getaddrinfo(NULL, argv[1], &hints, &address) != 0, "rdma_getaddrinfo");
  give_up_if(rdma_create_ep(&listener, address, NULL, &qp) != 0, "rdma_create_ep");
  give_up_if(rdma_listen(listener, 1) != 0, "rdma_listen");
  printf("note_server: listening on port %s\n", argv[1]);
  fflush(stdout); /* into a pipe, too: whoever reads this line may start the client */
  give_up_if(rdma_get_request(listener, &id) != 0, "rdma_get_request");

  /* 2. Register the memory: the RNIC will check every access of the client against these bounds and rights. */
  static char note[NOTE_BYTES];
  struct ibv_mr* mr = ibv_reg_mr(id->pd, note, sizeof note,
                                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  give_up_if(mr == NULL, "ibv_reg_mr");

  /* 3. Post the receive for "done" before the connection exists: on iWARP a Send that finds no receive ends it. */
  give_up_if(rdma_post_recv(id, NULL, note, 0, mr) != 0, "rdma_post_recv");

  /* 4. Accept. The private data tells the client where the memory is, and its key. */
  struct note_location location = {.address = (uintptr_t)note, .rkey = mr->rkey, .bytes = sizeof note};
  struct rdma_conn_param accept = {
      .private_data = &location, .private_data_len = sizeof location, .responder_resources = 1, .initiator_depth = 1};
  give_up_if(rdma_accept(id, &accept) != 0, "rdma_accept");

  /* 5. The client writes and reads; nothing is to be done here. Its "done" comes behind its writes, so they are here. */
  await(rdma_get_recv_comp, id, "receive");
  printf("note_server: the client left a note: %s\n", note);

  rdma_disconnect(id);
  rdma_dereg_mr(mr);
  rdma_destroy_ep(id);
  rdma_destroy_ep(listener);
  rdma_freeaddrinfo(address);
  return 0;
}
