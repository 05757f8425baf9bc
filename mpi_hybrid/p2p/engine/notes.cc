#include <cstring>

#include "mpi_hybrid/p2p/engine/engine.h"
#include "mpi_hybrid/p2p/engine/pool.h"
#include "mpi_hybrid/p2p/request/news.h"

// What the libraries of two processes tell each other beside the messages of the program.
namespace weft::mpi {

void Engine::SendNote(ProcessId process, std::span<const uint8_t> bytes) {
  Link& link = LinkTo(process);
  if (link.is_gone()) return;
  SendRequest* send = Pool<SendRequest>::Take();
  send->engine = this;
  send->link = &link;
  send->packed.reset(new uint8_t[bytes.size()]);
  std::memcpy(send->packed.get(), bytes.data(), bytes.size());
  send->payload = Payload(send->packed.get(), bytes.size());
  send->length = bytes.size();
  send->stage = SendRequest::Stage::kQueued;
  send->stream_left = 0;
  send->frame.flow = Link::kControlFlow;
  send->frame.send = send;
  send->frame.body = bytes.size();
  ++unfinished_sends_;
  ++link.unfinished_sends;
  link.Enqueue(send->frame, {.kind = FrameKind::kNote, .length = bytes.size()});
}

Message* Engine::NewNote(const FrameHeader& header, Link& link) {
  Message* note = Pool<Message>::Take();
  note->link = &link;
  note->kind = header.kind;
  note->length = header.length;
  note->Allocate(header.length);
  return note;
}

void Engine::FinishNote(Message& note) {
  if (on_note_) {
    notes_.push_back({note.link->peer(), std::vector<uint8_t>(note.data, note.data + note.length)});
    on_note_();
    News::Tell();
  }
  note.Drop();
}

}  // namespace weft::mpi
