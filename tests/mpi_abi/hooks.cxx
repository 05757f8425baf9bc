// What libmpichcxx.so.12 needs of the library below it: operations, error handlers and attributes of C++. Prints "ok" on rank 0.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

#define EXPECT(condition)                                                     \
  do {                                                                        \
    if (!(condition)) {                                                       \
      std::fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                           \
    }                                                                         \
  } while (0)

namespace {

void LargestLast(const void* in, void* inout, int count, const MPI::Datatype& type) {
  EXPECT(type == MPI::INT);
  for (int i = 0; i < count; ++i) {
    const int a = static_cast<const int*>(in)[i];
    int& b = static_cast<int*>(inout)[i];
    b = a > b ? a : b;
  }
}

int g_handled = 0;
void Handler(MPI::Comm& comm, int* code, ...) {
  ++g_handled;
  EXPECT(MPI::Get_error_class(*code) == MPI::ERR_RANK);
  EXPECT(comm.Get_size() >= 1);
}

int g_copies = 0;
int Copy(const MPI::Comm& comm, int, void* extra, void* in, void* out, bool& flag) {
  EXPECT(comm.Get_size() == 1);
  ++g_copies;
  *static_cast<void**>(out) = static_cast<char*>(in) + *static_cast<int*>(extra);
  flag = true;
  return MPI::SUCCESS;
}
int g_deletes = 0;
int Delete(MPI::Comm&, int, void*, void*) {
  ++g_deletes;
  return MPI::SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  MPI::Init(argc, argv);
  const int rank = MPI::COMM_WORLD.Get_rank(), size = MPI::COMM_WORLD.Get_size();

  MPI::Op op;
  op.Init(LargestLast, true);
  int mine[2] = {rank, 10 - rank}, all[2];
  MPI::COMM_WORLD.Allreduce(mine, all, 2, MPI::INT, op);
  EXPECT(all[0] == size - 1 && all[1] == 10);
  op.Free();

  MPI::Errhandler handler = MPI::Comm::Create_errhandler(Handler);
  MPI::Intracomm own = MPI::COMM_WORLD.Dup();
  own.Set_errhandler(handler);
  own.Send(mine, 1, MPI::INT, 4711, 0);
  EXPECT(g_handled == 1);
  handler.Free();

  own.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
  bool thrown = false;
  try {
    own.Send(mine, -1, MPI::INT, 0, 0);
  } catch (MPI::Exception& e) {
    thrown = e.Get_error_class() == MPI::ERR_COUNT;
  }
  EXPECT(thrown);
  own.Free();

  int extra = 2;
  char bytes[8];
  const int keyval = MPI::Comm::Create_keyval(Copy, Delete, &extra);
  MPI::Intracomm self = MPI::COMM_SELF.Dup();
  self.Set_attr(keyval, bytes);
  MPI::Intracomm copy = self.Dup();
  char* value = nullptr;
  EXPECT(copy.Get_attr(keyval, &value) && value == bytes + 2);
  copy.Free();
  self.Free();
  EXPECT(g_copies == 1 && g_deletes == 2);

  MPI::Finalize();
  if (rank == 0) std::puts("ok");
}
