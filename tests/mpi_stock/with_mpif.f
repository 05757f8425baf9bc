c     mpif.h: messages, a reduction, a derived type, an attribute, a user's operation, a window; fixed source form.
      program withmpif
      implicit none
      include 'mpif.h'
      integer ierr, rank, n, left, right, status(MPI_STATUS_SIZE)
      integer out, in, total, column, i, j, count, bad, op, win
      integer requests(2), statuses(MPI_STATUS_SIZE, 2)
      integer (kind=MPI_ADDRESS_KIND) tag_ub, bytes, place
      logical found
      double precision a(10,10), b(10), memory(100)
      external combine
      bad = 0
      call MPI_Init(ierr)
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
      call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
      right = mod(rank + 1, n)
      left = mod(rank + n - 1, n)
      out = rank
      in = -1
      call MPI_Sendrecv(out, 1, MPI_INTEGER, right, 1, in, 1,
     &                  MPI_INTEGER, left, 1, MPI_COMM_WORLD, status,
     &                  ierr)
      if (in .ne. left .or. status(MPI_SOURCE) .ne. left) bad = 1
      call MPI_Get_count(status, MPI_INTEGER, count, ierr)
      if (count .ne. 1) bad = 2
      call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM,
     &                   MPI_COMM_WORLD, ierr)
      if (total .ne. n * (n - 1) / 2) bad = 3
      do 20 j = 1, 10
        do 10 i = 1, 10
          a(i, j) = 100 * i + j + 1000 * rank
   10   continue
   20 continue
      call MPI_Type_vector(10, 1, 10, MPI_DOUBLE_PRECISION, column,
     &                     ierr)
      call MPI_Type_commit(column, ierr)
      call MPI_Irecv(b, 10, MPI_DOUBLE_PRECISION, left, 2,
     &               MPI_COMM_WORLD, requests(1), ierr)
      call MPI_Isend(a(3, 1), 1, column, right, 2, MPI_COMM_WORLD,
     &               requests(2), ierr)
      call MPI_Waitall(2, requests, statuses, ierr)
      call MPI_Type_free(column, ierr)
      do 30 j = 1, 10
        if (b(j) .ne. 300 + j + 1000 * left) bad = 4
   30 continue
      call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, tag_ub, found,
     &                       ierr)
      if (.not. found .or. tag_ub .lt. 32767) bad = 5
      call MPI_Op_create(combine, .true., op, ierr)
      in = -1
      call MPI_Allreduce(rank, in, 1, MPI_INTEGER, op, MPI_COMM_WORLD,
     &                   ierr)
      if (in .ne. n - 1) bad = 6
      call MPI_Op_free(op, ierr)
      call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_MAX,
     &                   MPI_COMM_WORLD, ierr)
      if (total .ne. n * (n - 1) / 2) bad = 7
      bytes = 800
      place = 5
      call MPI_Win_create(memory, bytes, 8, MPI_INFO_NULL,
     &                    MPI_COMM_WORLD, win, ierr)
      call MPI_Win_fence(0, win, ierr)
      call MPI_Put(a(3, 1), 1, MPI_DOUBLE_PRECISION, right, place, 1,
     &             MPI_DOUBLE_PRECISION, win, ierr)
      call MPI_Win_fence(0, win, ierr)
      if (memory(6) .ne. 301 + 1000 * left) bad = 8
      call MPI_Win_free(win, ierr)
      call MPI_Send(out, 1, MPI_INTEGER, MPI_PROC_NULL, 0,
     &              MPI_COMM_WORLD, ierr)
      if (bad .ne. 0) print *, 'rank', rank, 'step', bad, 'is wrong'
      call MPI_Allreduce(MPI_IN_PLACE, bad, 1, MPI_INTEGER, MPI_MAX,
     &                   MPI_COMM_WORLD, ierr)
      if (rank .eq. 0 .and. bad .eq. 0) print *, 'mpif.h is good'
      call MPI_Finalize(ierr)
      if (bad .ne. 0) stop 1
      end

c     The larger of both.
      subroutine combine(a, b, n, type)
      integer n, type, a(n), b(n), i
      do 10 i = 1, n
        if (a(i) .gt. b(i)) b(i) = a(i)
   10 continue
      end
