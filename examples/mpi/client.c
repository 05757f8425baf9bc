/* client [PORT]: asks the job of server.c how many primes there are up to 20000, a share by each rank, and compares the sum with what is
 * known. Without PORT, which the server prints, it looks for the name that the server published; server.c says how to start the two.
 */
#include <mpi.h>
#include <stdio.h>

static const char kService[] = "primes";
enum { kQuestion = 1, kAnswer = 2 };
static const long kEnd = 20000, kPrimesBelow = 2262;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  /* 1. Only the rank that is the root of MPI_Comm_connect needs the port's name. */
  char found[MPI_MAX_PORT_NAME] = "";
  if (rank == 0 && argc < 2) MPI_Lookup_name(kService, MPI_INFO_NULL, found);
  const char* port = argc < 2 ? found : argv[1];

  /* 2. Waits until the server accepts. */
  MPI_Comm server;
  int servers;
  MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &server);
  MPI_Comm_remote_size(server, &servers);

  /* 3. Each asks one of the server's ranks for its share. */
  const long range[2] = {kEnd * rank / ranks, kEnd * (rank + 1) / ranks};
  long primes, total = 0;
  MPI_Send(range, 2, MPI_LONG, rank % servers, kQuestion, server);
  MPI_Recv(&primes, 1, MPI_LONG, rank % servers, kAnswer, server, MPI_STATUS_IGNORE);
  MPI_Comm_disconnect(&server);

  MPI_Reduce(&primes, &total, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("client: %ld primes below %ld, by %d ranks of the server; %ld too many\n", total, kEnd, servers, total - kPrimesBelow);
  MPI_Finalize();
  return rank == 0 && total != kPrimesBelow;
}
