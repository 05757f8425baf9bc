#ifndef TRANSPORT_SEND_BUFFER_H_
#define TRANSPORT_SEND_BUFFER_H_

namespace weft::transport {

// For a connected TCP socket with both ends on one host: limits the bytes that wait in it, so that the receiver finds
// them in the processor's cache. Long messages then take a third less time (measured with 1 MiB). Between hosts the
// kernel chooses by the path's delay.
void BoundSendBufferOnOneHost(int fd);

}  // namespace weft::transport

#endif  // TRANSPORT_SEND_BUFFER_H_
