#include "rdmap/opcode.h"

#include <array>

#include "rdmap/atomic.h"
#include "rdmap/delivery.h"
#include "rdmap/terminate.h"

namespace weft::rdmap {
namespace {

constexpr size_t kTagged = ddp::TaggedHeader::kLength;
constexpr size_t kUntagged = ddp::UntaggedHeader::kLength;

// Indexed by the opcode on the wire.
constexpr std::array<OpcodeInfo, 16> kOpcodes = {{
    {"RDMA Write", true, 0, kTagged, 0, false, false, Handler::kWrite, Legal::kAlways},
    {"RDMA Read Request", false, kReadRequestQueue, kUntagged, kReadRequestLength, false, false, Handler::kReadRequest,
     Legal::kAlways},
    {"RDMA Read Response", true, 0, kTagged, 0, false, false, Handler::kReadResponse, Legal::kWhileReadOutstanding,
     Streams::kAll, false},
    {"Send", false, kSendQueue, kUntagged, 0, false, false, Handler::kSend, Legal::kAlways},
    {"Send with Invalidate", false, kSendQueue, kUntagged, 0, false, true, Handler::kSend, Legal::kAlways},
    {"Send with Solicited Event", false, kSendQueue, kUntagged, 0, true, false, Handler::kSend, Legal::kAlways},
    {"Send with Solicited Event and Invalidate", false, kSendQueue, kUntagged, 0, true, true, Handler::kSend,
     Legal::kAlways},
    {"Terminate", false, kTerminateQueue, kUntagged, TerminateMessage::kMaxLength, false, false, Handler::kTerminate,
     Legal::kAlways, Streams::kAll, false},
    {"Immediate Data", false, kSendQueue, kUntagged, kImmediateLength, false, false, Handler::kImmediate, Legal::kAlways,
     Streams::kExtended},
    {"Immediate Data with Solicited Event", false, kSendQueue, kUntagged, kImmediateLength, true, false, Handler::kImmediate,
     Legal::kAlways, Streams::kExtended},
    {"Atomic Request", false, kReadRequestQueue, kUntagged, AtomicRequestHeader::kLength, false, false, Handler::kAtomicRequest,
     Legal::kAlways, Streams::kWithAtomics},
    {"Atomic Response", false, kAtomicResponseQueue, kUntagged, AtomicResponseHeader::kLength, false, false,
     Handler::kAtomicResponse, Legal::kWhileReadOutstanding, Streams::kWithAtomics, false},
    {},
    {},
    {},
    {"Delivery", false, kDeliveryQueue, kUntagged, DeliveryMessage::kLength, false, false, Handler::kDelivery, Legal::kAlways,
     Streams::kExtended, false},
}};

}  // namespace

const OpcodeInfo* FindOpcode(uint8_t opcode) {
  return opcode < kOpcodes.size() && kOpcodes[opcode].name != nullptr ? &kOpcodes[opcode] : nullptr;
}

}  // namespace weft::rdmap
