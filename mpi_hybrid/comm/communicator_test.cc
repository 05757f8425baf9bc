#include "mpi_hybrid/comm/communicator.h"

#include <gtest/gtest.h>

#include "mpi_hybrid/comm/context_pool.h"

namespace weft::mpi {
namespace {

class CommunicatorTest : public testing::Test {
 protected:
  CommunicatorTest() { MakeWorld(2, 5); }
  ~CommunicatorTest() override { DropWorld(); }

  // One that owns the context id `id`, as the constructors of make_comm.cc make it.
  static Ref<Comm> MakeWithId(uint32_t id) {
    std::vector<uint64_t> mask(ContextPool::kWords);
    TheContextPool().Propose(0, mask);
    TheContextPool().Settle(0, mask, std::vector<uint32_t>{id});
    Ref<Comm> comm = MakeRef<Comm>();
    comm->local = comm->remote = World().local;
    comm->send_context = comm->receive_context = ContextPool::ContextOf(id);
    comm->owns_context = true;
    return comm;
  }
};

TEST_F(CommunicatorTest, WorldAndSelfAreThereByTheirHandles) {
  ASSERT_EQ(Comm::Find(MPI_COMM_WORLD), &World());
  ASSERT_EQ(Comm::Find(MPI_COMM_SELF), &Self());
  EXPECT_EQ(World().rank, 2);
  EXPECT_EQ(World().size(), 5);
  EXPECT_EQ(World().receive_context, 0u);
  EXPECT_EQ(Self().rank, 0);
  EXPECT_EQ(Self().size(), 1);
  EXPECT_EQ(Self().peer(0), 2);
  EXPECT_EQ(Self().receive_context, 2u);
  EXPECT_EQ(World().name, "MPI_COMM_WORLD");
  EXPECT_EQ(Self().name, "MPI_COMM_SELF");
  EXPECT_FALSE(World().error_handler);
  EXPECT_EQ(Comm::Find(MPI_COMM_NULL), nullptr);
}

TEST_F(CommunicatorTest, NothingIsFoundAfterDropWorld) {
  DropWorld();
  EXPECT_EQ(Comm::Find(MPI_COMM_WORLD), nullptr);
  EXPECT_EQ(Comm::Find(MPI_COMM_SELF), nullptr);
}

TEST_F(CommunicatorTest, AnOperationKeepsAFreedCommunicatorAndItsContext) {
  Ref<Comm> operation = MakeWithId(77);
  const MPI_Comm handle = Comm::Give(operation);
  EXPECT_EQ(Comm::Find(handle), operation.get());
  Comm::TakeBack(*operation);
  EXPECT_EQ(Comm::Find(handle), nullptr);
  EXPECT_TRUE(operation->freed);
  EXPECT_EQ(operation->handle, MPI_COMM_NULL);
  EXPECT_FALSE(TheContextPool().IsFree(77));
  operation = nullptr;
  EXPECT_TRUE(TheContextPool().IsFree(77));
}

TEST_F(CommunicatorTest, PredefinedOnesOwnNoContext) {
  EXPECT_TRUE(IsPredefined(World()));
  EXPECT_FALSE(World().owns_context);
  EXPECT_FALSE(IsPredefined(*MakeWithId(78)));
}

}  // namespace
}  // namespace weft::mpi
