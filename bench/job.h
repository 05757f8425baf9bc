#ifndef BENCH_JOB_H_
#define BENCH_JOB_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/message.h"

namespace weft::bench {

enum class Role : uint8_t { kInitiator, kResponder };

// How an end waits for the other. Raw TCP supports kSpin (recv with MSG_DONTWAIT), and blocks for the others.
enum class Wait : uint8_t {
  kSpin,    // polls the CQ, as ib_send_lat does
  kMemory,  // polls the last byte of its buffer and never the receive CQ, as ib_write_lat does
  kEvent,   // sleeps on the completion channel
};

enum class Operation : uint8_t { kSend, kWrite, kRead };  // raw TCP: a stream from initiator to responder

// What an endpoint opens.
struct Shape {
  std::string address = "127.0.0.1";
  int64_t connections = 1;
  int64_t send_depth = 128;  // perftest's default
  int64_t receive_depth = 256;
  int64_t buffer = 1 << 20;  // bytes of the send area, and of the receive area
  bool events = false;       // the CQs have a completion channel

  static Shape From(const Message& message);
  void AddTo(Message* message) const;
};

// One measurement over the first open connection.
struct Job {
  bool ping_pong = false;  // otherwise one way: `count` messages, then an answer from the responder
  Operation operation = Operation::kSend;
  Wait wait = Wait::kSpin;            // of the initiator; in a ping-pong, of both
  Wait responder_wait = Wait::kSpin;  // if one way
  int64_t bytes = 1;                  // of a message. Wait::kMemory: the same in all jobs of a connection
  int64_t count = 1;
  int64_t warm_up = 0;  // messages before the first one that is measured (ping-pong)
  int64_t list = 1;     // work requests per ibv_post_send
  bool inlined = false;

  static Job From(const Message& message);
  void AddTo(Message* message) const;
};

// The result of a job at one end. Times in seconds. The half round trips and `elapsed` are the initiator's.
struct Sample {
  double elapsed = 0;
  double median = 0;  // of the half round trips
  double p99 = 0;
  double cpu = 0;  // of the process, all threads, user and system
  int64_t context_switches = 0;

  static Sample From(const Message& message);
  void AddTo(Message* message) const;
};

}  // namespace weft::bench

#endif  // BENCH_JOB_H_
