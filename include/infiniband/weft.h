#ifndef INFINIBAND_WEFT_H
#define INFINIBAND_WEFT_H

/* What Weft's queue pairs offer beyond <infiniband/verbs.h>: the options of ibv_query_ece(3) and ibv_set_ece(3) where `vendor_id` is
 * this. Programs that ask for the vendor need not know on what they run. */
#define WEFT_ECE_VENDOR_ID 0x626d74 /* ibv_device_attr's too; as Linux's software RNIC: no vendor of a chip */

/* A connected queue pair in the RoCE persona asks another Weft end for InfiniBand's semantics: requests are complete when the peer has
 * carried them out, a Send waits for its receive, there are immediate data and atomics. They cost a message each way. Without the option,
 * at either end, the connection is plain iWARP (RFC 5040): a request is complete when its bytes are on their way, and a Send that finds no
 * receive ends the connection. Set by default; RC only; may be cleared in
 * RESET and INIT, before rdma_connect(3) or rdma_accept(3); later it is without effect or EINVAL. */
#define WEFT_ECE_INFINIBAND_SEMANTICS 1u

/* A connected queue pair in the RoCE persona has atomics on plain iWARP connections, too (RFC 7306), if the other end has this option. Set
 * by default; RC only; cleared as above. Once there is a connection, ibv_query_ece says whether that has atomics, and whether it has
 * InfiniBand's semantics. */
#define WEFT_ECE_ATOMICS 2u

#endif /* INFINIBAND_WEFT_H */
