// wrong_length OPERATION LENGTH: rank 1 answers rank 0's operation on its window with a reply that is forged, most with one of another length: its data is a byte `short`, a byte too `long`,
// `absent`, or not even the header is all there (`headless`). Or the reply says that it answers a fence, too, which did not come along (`of_fence`). The operation fails, and says so; what rank 0 does with rank 2 goes on, and all come to the end.
//
// Rank 1 is Weft's library, but what it posts passes by here first: rdma_create_qp and rdma_accept of the program stand before librdmacm's.
#define _GNU_SOURCE  // RTLD_NEXT

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <mpi.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what) \
  do { \
    if (!(what)) { \
      fprintf(stderr, "wrong_length.c:%d: rank %d: %s\n", __LINE__, rank, #what); \
      MPI_Abort(MPI_COMM_WORLD, 1); \
    } \
  } while (0)

// The reply's header (mpi_hybrid/rma/wire.h); of a rank's window; connections that others make.
enum { kReplyBytes = 8, kOfFence = 0x80, kElements = 64, kMostAccepted = 16 };

static const char* forged;  // how; NULL: not here
static atomic_int forgeries;
static struct ibv_qp* _Atomic accepted[kMostAccepted];
static atomic_int accepted_count;
static int (*post_send)(struct ibv_qp*, struct ibv_send_wr*, struct ibv_send_wr**);

static uint32_t ForgedLength(uint32_t bytes) {
  if (strcmp(forged, "short") == 0) return bytes - 1;
  if (strcmp(forged, "long") == 0) return bytes + 1;
  return strcmp(forged, "absent") == 0 ? kReplyBytes : kReplyBytes - 5;
}

// Over its own connections a rank sends its messages, over those that it accepted its replies.
static int Replies(struct ibv_qp* qp) {
  const int count = atomic_load(&accepted_count);
  for (int i = 0; i < count && i < kMostAccepted; ++i) {
    if (atomic_load(&accepted[i]) == qp) return 1;
  }
  return 0;
}

// What is longer than a header is a reply with data.
static int PostForged(struct ibv_qp* qp, struct ibv_send_wr* requests, struct ibv_send_wr** bad) {
  for (struct ibv_send_wr* request = Replies(qp) ? requests : NULL; request != NULL; request = request->next) {
    if (request->opcode != IBV_WR_SEND || request->num_sge != 1 || request->sg_list->length <= kReplyBytes) continue;
    if (strcmp(forged, "of_fence") == 0) {
      *(uint8_t*)(uintptr_t)request->sg_list->addr |= kOfFence;
    } else {
      request->sg_list->length = ForgedLength(request->sg_list->length);
    }
    atomic_fetch_add(&forgeries, 1);
  }
  return post_send(qp, requests, bad);
}

__attribute__((visibility("default"))) int rdma_create_qp(struct rdma_cm_id* id, struct ibv_pd* domain, struct ibv_qp_init_attr* attributes) {
  int (*create)(struct rdma_cm_id*, struct ibv_pd*, struct ibv_qp_init_attr*);
  *(void**)&create = dlsym(RTLD_NEXT, "rdma_create_qp");
  const int result = create(id, domain, attributes);
  if (result != 0 || forged == NULL || id->verbs->ops.post_send == PostForged) return result;
  post_send = id->verbs->ops.post_send;
  id->verbs->ops.post_send = PostForged;
  return result;
}

__attribute__((visibility("default"))) int rdma_accept(struct rdma_cm_id* id, struct rdma_conn_param* parameters) {
  int (*accept)(struct rdma_cm_id*, struct rdma_conn_param*);
  *(void**)&accept = dlsym(RTLD_NEXT, "rdma_accept");
  if (forged != NULL) {
    const int place = atomic_fetch_add(&accepted_count, 1);
    if (place >= kMostAccepted) abort();
    atomic_store(&accepted[place], id->qp);
  }
  return accept(id, parameters);
}

static const char* length;
static int rank;
static MPI_Win window;

// It failed as where a rank is gone (docs/supported.md), since one that answers so is of no use. `says`: the connection tells why.
static void CheckFailure(int code, int says) {
  int class, bytes;
  char text[MPI_MAX_ERROR_STRING];
  CHECK(code != MPI_SUCCESS);
  MPI_Error_class(code, &class);
  MPI_Error_string(code, text, &bytes);
  if (class != MPIX_ERR_PROC_FAILED) fprintf(stderr, "class %d: %s\n", class, text);
  CHECK(class == MPIX_ERR_PROC_FAILED);
  const char* why = strcmp(length, "headless") == 0 || strcmp(length, "of_fence") == 0 ? "a reply without a request" : "a reply has the wrong length";
  if (says && strstr(text, why) == NULL) fprintf(stderr, "%s\n", text);
  CHECK(!says || strstr(text, why) != NULL);
}

// Pieces of a few bytes, with which the target's service answers; one piece would be an RDMA Read, to which no program of the target is party.
static MPI_Datatype EverySecond(void) {
  MPI_Datatype type;
  MPI_Type_vector(kElements / 2, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

static int got[kElements];

// Collective. The others' fences may succeed or fail; they return.
static void InFence(void) {
  MPI_Datatype every_second = EverySecond();
  CHECK(MPI_Win_fence(0, window) == MPI_SUCCESS);
  if (rank == 0) MPI_Get(got, kElements / 2, MPI_INT, 1, 0, 1, every_second, window);
  const int code = MPI_Win_fence(0, window);
  if (rank == 0) CheckFailure(code, 0);
  MPI_Type_free(&every_second);
}

// Lock, operation and unlock are one message.
static void UnderLock(void) {
  CHECK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window) == MPI_SUCCESS);
  MPI_Get(got, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
  CheckFailure(MPI_Win_unlock(1, window), 1);
}

static int Operate(const char* what, int target, MPI_Request* request) {
  static const int one = 1;
  static MPI_Datatype every_second = MPI_DATATYPE_NULL;
  if (every_second == MPI_DATATYPE_NULL) every_second = EverySecond();
  if (strcmp(what, "get") == 0) return MPI_Get(got, kElements / 2, MPI_INT, target, 0, 1, every_second, window);
  if (strcmp(what, "rget") == 0) return MPI_Rget(got, kElements / 2, MPI_INT, target, 0, 1, every_second, window, request);
  if (strcmp(what, "get_accumulate") == 0) {
    return MPI_Get_accumulate(NULL, 0, MPI_INT, got, kElements, MPI_INT, target, 0, kElements, MPI_INT, MPI_NO_OP, window);
  }
  if (strcmp(what, "rget_accumulate") == 0) {
    return MPI_Rget_accumulate(NULL, 0, MPI_INT, got, kElements, MPI_INT, target, 0, kElements, MPI_INT, MPI_NO_OP, window, request);
  }
  if (strcmp(what, "fetch_and_op") == 0) return MPI_Fetch_and_op(&one, got, MPI_INT, target, 0, MPI_SUM, window);
  if (strcmp(what, "compare_and_swap") == 0) return MPI_Compare_and_swap(&one, &one, got, MPI_INT, target, 0, window);
  return MPI_ERR_ARG;
}

static void Flushed(const char* what) {
  CHECK(MPI_Win_lock_all(0, window) == MPI_SUCCESS);
  MPI_Request request = MPI_REQUEST_NULL;
  int code = Operate(what, 1, &request);
  if (code == MPI_SUCCESS && request != MPI_REQUEST_NULL) CheckFailure(MPI_Wait(&request, MPI_STATUS_IGNORE), 1);
  if (code == MPI_SUCCESS) code = MPI_Win_flush(1, window);
  CheckFailure(code, 1);
  CheckFailure(Operate(what, 1, &request), 1);  // the connection is gone for all that comes
  request = MPI_REQUEST_NULL;
  CHECK(Operate(what, 2, &request) == MPI_SUCCESS);
  if (request != MPI_REQUEST_NULL) CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(MPI_Win_flush(2, window) == MPI_SUCCESS);
  CheckFailure(MPI_Win_unlock_all(window), 0);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  length = argv[2];
  const char* own = getenv("PMI_RANK");
  if (own != NULL && atoi(own) == 1) forged = argv[2];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK((rank == 1) == (forged != NULL));
  int* memory;
  MPI_Win_allocate(kElements * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  for (int i = 0; i < kElements; ++i) memory[i] = i;
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(argv[1], "fence") == 0) {
    InFence();
  } else if (rank == 0 && strcmp(argv[1], "lock") == 0) {
    UnderLock();
  } else if (rank == 0) {
    Flushed(argv[1]);
  }
  (void)MPI_Win_free(&window);
  if (rank == 1) CHECK(atomic_load(&forgeries) > 0);
  printf("rank %d came to the end\n", rank);
  MPI_Finalize();
  return 0;
}
