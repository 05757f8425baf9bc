// Two programs that UCX connects by address: "ucx_program ADDRESS PORT" to "ucx_program ADDRESS PORT server". They exchange messages of
// several sizes, checked; the client leaves, and the server must be told. Each prints "right".
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <ucp/api/ucp.h>

static ucp_worker_h worker;
static ucp_conn_request_h request;
static ucs_status_t peer = UCS_OK;

static void on_request(ucp_conn_request_h came, void* arg) {
  (void)arg;
  request = came;
}

static void on_error(void* arg, ucp_ep_h endpoint, ucs_status_t status) {
  (void)arg;
  (void)endpoint;
  peer = status;
}

static void must(ucs_status_t status, const char* what) {
  if (status == UCS_OK) return;
  fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
  exit(1);
}

static void finish(ucs_status_ptr_t pending, const char* what) {
  if (pending == NULL) return;
  if (UCS_PTR_IS_ERR(pending)) must(UCS_PTR_STATUS(pending), what);
  ucs_status_t status;
  while ((status = ucp_request_check_status(pending)) == UCS_INPROGRESS) ucp_worker_progress(worker);
  ucp_request_free(pending);
  must(status, what);
}

static void exchange(ucp_ep_h endpoint, int size, int round, int server) {
  const ucp_request_param_t plain = {0};
  char* out = malloc(size);
  char* in = calloc(1, size);
  for (int i = 0; i < size; ++i) out[i] = (char)(i * 7 + round + server);
  for (int turn = 0; turn < 2; ++turn) {
    if (turn == server) {
      finish(ucp_tag_send_nbx(endpoint, out, size, 5, &plain), "send");
    } else {
      finish(ucp_tag_recv_nbx(worker, in, size, 5, ~0ull, &plain), "receive");
    }
  }
  for (int i = 0; i < size; ++i) {
    if (in[i] == (char)(i * 7 + round + !server)) continue;
    fprintf(stderr, "byte %d of a message of %d is wrong\n", i, size);
    exit(1);
  }
  free(out);
  free(in);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int server = argc > 3;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[2]))};
  inet_pton(AF_INET, argv[1], &address.sin_addr);
  const ucs_sock_addr_t where = {(struct sockaddr*)&address, sizeof address};

  ucp_config_t* config;
  must(ucp_config_read(NULL, NULL, &config), "ucp_config_read");
  ucp_context_h context;
  const ucp_params_t parameters = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
  must(ucp_init(&parameters, config, &context), "ucp_init");
  const ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE, .thread_mode = UCS_THREAD_MODE_SINGLE};
  must(ucp_worker_create(context, &single, &worker), "ucp_worker_create");

  ucp_listener_h listener = NULL;
  ucp_ep_params_t how = {.field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                         .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                         .err_handler = {on_error, NULL}};
  if (server) {
    const ucp_listener_params_t listening = {.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
                                             .sockaddr = where,
                                             .conn_handler = {on_request, NULL}};
    must(ucp_listener_create(worker, &listening, &listener), "ucp_listener_create");
    while (request == NULL) ucp_worker_progress(worker);
    how.field_mask |= UCP_EP_PARAM_FIELD_CONN_REQUEST;
    how.conn_request = request;
  } else {
    how.field_mask |= UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_FLAGS;
    how.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    how.sockaddr = where;
  }
  ucp_ep_h endpoint;
  must(ucp_ep_create(worker, &how, &endpoint), "ucp_ep_create");
  const int sizes[] = {8, 3000, 100000, 2000000};
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    for (int round = 0; round < 10; ++round) exchange(endpoint, sizes[i], round, server);
  }
  const time_t patience = time(NULL) + 40;
  while (server && peer == UCS_OK && time(NULL) < patience) ucp_worker_progress(worker);
  if (server && peer == UCS_OK) must(UCS_ERR_TIMED_OUT, "the peer left and nobody said so");
  const ucp_request_param_t close = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = server ? UCP_EP_CLOSE_FLAG_FORCE : 0};
  finish(ucp_ep_close_nbx(endpoint, &close), "ucp_ep_close_nbx");
  if (server) ucp_listener_destroy(listener);
  ucp_worker_destroy(worker);
  ucp_cleanup(context);
  ucp_config_release(config);
  printf("right\n");
  return 0;
}
