#include "rdmap/termination.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "llp/ulpdu.h"

namespace weft::rdmap {
namespace {

TEST(OffendingSegment, OfALongerOneATerminateSaysTheMostThatItsFieldCan) {
  const std::vector<uint8_t> header(ddp::UntaggedHeader::kLength, 0x41);
  for (const size_t length : {size_t{1000}, size_t{65535}, llp::kLongestUlpdu}) {
    OffendingSegment segment;
    segment.Capture(length, header);
    const TerminateMessage message = Explain(ddp::Error::kInvalidQueue, segment);
    EXPECT_EQ(message.ddp_segment_length, std::min<size_t>(length, 65535));
  }
}

}  // namespace
}  // namespace weft::rdmap
