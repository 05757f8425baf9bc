/* server [JOBS]: a job that others come to while it runs. It opens a port, publishes the port's name under "primes", and serves one job of
 * client.c after another, each with all its ranks; after JOBS of them (1) it ends. A client asks how many primes there are in a range.
 *
 *   mpicc -O2 server.c -o server && mpicc -O2 client.c -o client
 *   mpiexec -nameserver-run names &                      where published names are; without it a client needs the port itself
 *   mpiexec -nameserver names -n 2 ./server 1 &
 *   mpiexec -nameserver names -n 3 ./client
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static const char kService[] = "primes";
enum { kQuestion = 1, kAnswer = 2 };

static long CountPrimes(long first, long end) {
  long count = 0;
  for (long n = first < 2 ? 2 : first; n < end; n++) {
    long divisor = 2;
    while (divisor * divisor <= n && n % divisor != 0) divisor++;
    count += divisor * divisor > n;
  }
  return count;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int jobs = argc > 1 ? atoi(argv[1]) : 1;
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  /* 1. The port is one process's; the others need not know its name. Whoever has the name may connect. */
  char port[MPI_MAX_PORT_NAME] = "";
  if (rank == 0) {
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Publish_name(kService, MPI_INFO_NULL, port);
    printf("server: port %s\n", port);
    fflush(stdout);
  }

  for (int job = 0; job < jobs; job++) {
    /* 2. Waits for a job to come. `clients` is an intercommunicator: in it, ranks to send to are those of the other job. */
    MPI_Comm clients;
    int count;
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &clients);
    MPI_Comm_remote_size(clients, &count);

    /* 3. One question of each client; they know by the same rule whom to ask. */
    for (int client = rank; client < count; client += ranks) {
      long range[2];
      MPI_Recv(range, 2, MPI_LONG, client, kQuestion, clients, MPI_STATUS_IGNORE);
      const long primes = CountPrimes(range[0], range[1]);
      MPI_Send(&primes, 1, MPI_LONG, client, kAnswer, clients);
    }

    /* 4. Both jobs part; from here on the end of one is nothing to the other. */
    MPI_Comm_disconnect(&clients);
    if (rank == 0) printf("server: %d questions answered\n", count);
  }

  /* 5. Nobody is to come any more. */
  if (rank == 0) {
    MPI_Unpublish_name(kService, MPI_INFO_NULL, port);
    MPI_Close_port(port);
  }
  MPI_Finalize();
  return 0;
}
