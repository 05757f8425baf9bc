// A C++ program: the C interface from C++, with the MPI C++ bindings' library linked, as MPICH's mpicxx does it.
#include <mpi.h>

#include <cstdio>
#include <numeric>
#include <vector>

int main(int argc, char** argv) {
  MPI::Init(argc, argv);
  const int rank = MPI::COMM_WORLD.Get_rank(), n = MPI::COMM_WORLD.Get_size();
  bool good = true;
  std::vector<double> out(1000), in(1000);
  std::iota(out.begin(), out.end(), rank * 1000.0);
  MPI::Request request = MPI::COMM_WORLD.Isend(out.data(), 1000, MPI::DOUBLE, (rank + 1) % n, 5);
  MPI::Status status;
  MPI::COMM_WORLD.Recv(in.data(), 1000, MPI::DOUBLE, (rank + n - 1) % n, MPI::ANY_TAG, status);
  request.Wait();
  good = good && status.Get_tag() == 5 && status.Get_count(MPI::DOUBLE) == 1000 && in[999] == (rank + n - 1) % n * 1000.0 + 999;
  int sum = 0;
  MPI::COMM_WORLD.Allreduce(&rank, &sum, 1, MPI::INT, MPI::SUM);
  good = good && sum == n * (n - 1) / 2;
  MPI::Intracomm half = MPI::COMM_WORLD.Split(rank % 2, rank);
  good = good && half.Get_rank() == rank / 2;
  half.Free();
  MPI::COMM_WORLD.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
  bool thrown = false;
  try {
    MPI::COMM_WORLD.Send(out.data(), 1, MPI::DOUBLE, n, 0);
  } catch (MPI::Exception& e) {
    thrown = e.Get_error_class() == MPI::ERR_RANK;
  }
  good = good && thrown;
  int all = good, every = 0;
  MPI::COMM_WORLD.Allreduce(&all, &every, 1, MPI::INT, MPI::MIN);
  if (rank == 0 && every == 1) std::printf("C++ is good\n");
  MPI::Finalize();
  return every == 1 ? 0 : 1;
}
