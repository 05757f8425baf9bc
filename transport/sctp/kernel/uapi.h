#ifndef TRANSPORT_SCTP_KERNEL_UAPI_H_
#define TRANSPORT_SCTP_KERNEL_UAPI_H_

// The kernel's header of SCTP, which needs these headers in front of it.
#include <stdint.h>
#include <sys/socket.h>

#include <linux/sctp.h>

#endif  // TRANSPORT_SCTP_KERNEL_UAPI_H_
