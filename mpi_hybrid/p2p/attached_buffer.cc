#include "mpi_hybrid/p2p/attached_buffer.h"

#include <algorithm>
#include <list>
#include <string>

#include "mpi_hybrid/datatype/external32.h"
#include "mpi_hybrid/p2p/engine/packed.h"
#include "mpi_hybrid/p2p/foreign.h"
#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/p2p/engine/payload.h"
#include "mpi_hybrid/p2p/progress.h"

namespace weft::mpi {
namespace {

// Part of the buffer that a message has until it is sent.
struct Segment {
  MPI_Aint begin, end;
  Request* send;  // our reference
};

struct Attached {
  uint8_t* buffer = nullptr;
  MPI_Aint size = 0;
  bool attached = false;
  bool detaching = false;
  std::list<Segment> segments;  // by address
};

Attached g_attached;

void ReleaseSent() {
  std::erase_if(g_attached.segments, [](const Segment& segment) {
    if (!segment.send->complete) return false;
    segment.send->Release();
    return true;
  });
}

// The first gap of `size` bytes: where it begins, and what it lies before; -1: none.
MPI_Aint FindGap(MPI_Aint size, std::list<Segment>::iterator* before) {
  MPI_Aint begin = 0;
  for (*before = g_attached.segments.begin(); *before != g_attached.segments.end(); ++*before) {
    if ((*before)->begin - begin >= size) return begin;
    begin = (*before)->end;
  }
  return g_attached.size - begin >= size ? begin : -1;
}

}  // namespace

Error SendBuffered(const void* buffer, MPI_Aint count, const Datatype& type, int destination, int tag, Comm& comm) {
  const bool foreign = IsForeign(comm.peer(destination));
  const MPI_Aint length = foreign ? ExternalSize(count, type) : count * type.size;
  const MPI_Aint needed = length + MPI_BSEND_OVERHEAD;
  std::list<Segment>::iterator before;
  ReleaseSent();
  MPI_Aint begin = FindGap(needed, &before);
  if (begin < 0 && !g_attached.segments.empty()) {
    Progress::Poll();
    ReleaseSent();
    begin = FindGap(needed, &before);
  }
  if (begin < 0) {
    return Error(MPI_ERR_BUFFER, "a buffered send of " + std::to_string(length) + " bytes plus MPI_BSEND_OVERHEAD does not fit into the " +
                                     std::to_string(g_attached.size) + " bytes of MPI_Buffer_attach, which hold " +
                                     std::to_string(g_attached.segments.size()) + " unsent messages");
  }
  uint8_t* copy = g_attached.buffer + begin;
  if (foreign && length != 0) {
    PackExternal(buffer, count, type, copy);
  } else {
    Payload(buffer, count, type).Take({copy, static_cast<size_t>(length)});
  }
  Request* send;
  const MPI_Datatype copied = IsPackedForClients(type, comm) ? MPI_PACKED : MPI_BYTE;
  WEFT_MPI_TRY(StartSend(copy, length, *Datatype::Find(copied), destination, tag, comm, SendMode::kStandard, Channel::kPointToPoint,
                         &send));
  g_attached.segments.insert(before, {begin, begin + needed, send});
  return {};
}

Error AttachBuffer(void* buffer, MPI_Aint size) {
  if (g_attached.attached) {
    return Error(MPI_ERR_BUFFER, "a buffer of " + std::to_string(g_attached.size) + " bytes is attached already");
  }
  g_attached.buffer = static_cast<uint8_t*>(buffer);
  g_attached.size = size;
  g_attached.attached = true;
  return {};
}

Error DetachBuffer(void** buffer, MPI_Aint* size) {
  Progress::WaitUntil([] {
    return std::all_of(g_attached.segments.begin(), g_attached.segments.end(), [](const Segment& s) { return s.send->complete; });
  });
  ReleaseSent();
  *buffer = g_attached.buffer;
  *size = g_attached.size;
  g_attached = {};
  return {};
}

}  // namespace weft::mpi
