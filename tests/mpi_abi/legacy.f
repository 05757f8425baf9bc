C     mpif.h, in fixed form, as old programs are. Prints "ok" on rank 0.
      program main
      implicit none
      include 'mpif.h'
      integer ierror, rank, size, status(MPI_STATUS_SIZE), got, sums(2)
      integer left, right, request, statuses(MPI_STATUS_SIZE, 1)
      double precision began
      call MPI_INIT(ierror)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierror)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, size, ierror)
      began = MPI_WTIME()
      right = mod(rank + 1, size)
      left = mod(rank + size - 1, size)
      call MPI_IRECV(got, 1, MPI_INTEGER, left, 1, MPI_COMM_WORLD,
     &               request, ierror)
      call MPI_SEND(rank, 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD,
     &              ierror)
      call MPI_WAITALL(1, request, statuses, ierror)
      if (got .ne. left) call MPI_ABORT(MPI_COMM_WORLD, 3, ierror)
      if (statuses(MPI_SOURCE, 1) .ne. left)
     &  call MPI_ABORT(MPI_COMM_WORLD, 4, ierror)
      call MPI_SENDRECV_REPLACE(got, 1, MPI_INTEGER, right, 2, left, 2,
     &                          MPI_COMM_WORLD, status, ierror)
      sums(1) = rank
      sums(2) = 1
      call MPI_ALLREDUCE(MPI_IN_PLACE, sums, 2, MPI_INTEGER, MPI_SUM,
     &                   MPI_COMM_WORLD, ierror)
      if (sums(2) .ne. size) call MPI_ABORT(MPI_COMM_WORLD, 5, ierror)
      if (MPI_WTIME() .lt. began) call MPI_ABORT(MPI_COMM_WORLD, 6,
     &                                           ierror)
      call MPI_FINALIZE(ierror)
      if (rank .eq. 0) print '(a)', 'ok'
      end
