// A machine without RDMA devices (WEFT_DEVICES names none that there is).
#include "cm/rdmacm_testing.h"

namespace weft::cm::public_api {
namespace {

// As without the kernel's rdma_cm. A server would wait for ever for clients that cannot come.
TEST(NoDevice, ThereIsNoEventChannelAndTheReasonIsSaid) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(rdma_create_event_channel(), nullptr);
  EXPECT_EQ(errno, ENODEV);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("no RDMA device"), std::string::npos) << said;
  EXPECT_NE(said.find("WEFT_DEVICES=nowhere"), std::string::npos) << said;
}

TEST(NoDevice, ThereIsNoSynchronousIdentifierEither) {
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP), -1);
  EXPECT_EQ(errno, ENODEV);
}

}  // namespace
}  // namespace weft::cm::public_api
