#ifndef TRANSPORT_SEND_BUFFER_H_
#define TRANSPORT_SEND_BUFFER_H_

namespace weft::transport {

// For a connected TCP socket whose ends are on one host: bounds what waits in it, so that the receiver finds the bytes in the processor's
// cache. Long messages take a third less time (1 MiB measured). Between hosts the kernel chooses by the path's delay.
void BoundSendBufferOnOneHost(int fd);

}  // namespace weft::transport

#endif  // TRANSPORT_SEND_BUFFER_H_
