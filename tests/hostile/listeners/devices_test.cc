// WEFT_DEVICES=lo: what the RNIC opens, it opens at the addresses of that device only.
#include <sys/socket.h>
#include <unistd.h>

#include "cm/rdmacm_testing.h"

namespace weft::cm::public_api {
namespace {

int ConnectTo(const char* host, uint16_t port) {
  const int stranger = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_storage to = Address(host, htons(port));
  const int error = connect(stranger, Raw(to), sizeof(sockaddr_in)) == 0 ? 0 : errno;
  close(stranger);
  return error;
}

TEST(Devices, AQueuePairsPortListensAtTheAddressesOfTheNamedDevicesOnly) {
  int count = 0;
  ibv_device** devices = ibv_get_device_list(&count);
  ASSERT_EQ(count, 1);
  ibv_context* context = ibv_open_device(devices[0]);
  ibv_pd* pd = ibv_alloc_pd(context);
  ibv_cq* cq = ibv_create_cq(context, 4, nullptr, nullptr, 0);
  ibv_qp_init_attr attributes = SmallQueuePair();
  attributes.send_cq = attributes.recv_cq = cq;
  ibv_qp* qp = ibv_create_qp(pd, &attributes);
  ASSERT_NE(qp, nullptr) << strerror(errno);
  const auto port = static_cast<uint16_t>(qp->qp_num >> 8);
  EXPECT_EQ(ConnectTo("127.0.0.1", port), 0);
  EXPECT_EQ(ConnectTo("127.0.0.5", port), ECONNREFUSED) << "this host's too, and no device's";
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  ibv_destroy_cq(cq);
  ibv_dealloc_pd(pd);
  ibv_close_device(context);
  ibv_free_device_list(devices);
}

}  // namespace
}  // namespace weft::cm::public_api
