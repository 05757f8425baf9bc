! use mpi: communicators, topologies, collectives, names and error strings.
program with_mpi
  use mpi
  implicit none
  integer :: ierr, rank, n, grid, row, dims(2), coords(2), before, after, length, code, bad, i
  integer, allocatable :: all(:), counts(:), places(:), mine(:)
  character(len=MPI_MAX_OBJECT_NAME) :: name
  character(len=MPI_MAX_ERROR_STRING) :: text
  character(len=MPI_MAX_PROCESSOR_NAME) :: host
  double precision :: start
  complex(kind(1d0)) :: z, product
  bad = 0
  call MPI_Init(ierr)
  start = MPI_Wtime()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
  dims = 0
  call MPI_Dims_create(n, 2, dims, ierr)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.true., .false.], .false., grid, ierr)
  call MPI_Cart_coords(grid, rank, 2, coords, ierr)
  call MPI_Cart_shift(grid, 0, 1, before, after, ierr)
  if (after /= mod(coords(1) + 1, dims(1)) * dims(2) + coords(2)) bad = 1
  call MPI_Cart_sub(grid, [.false., .true.], row, ierr)
  call MPI_Comm_set_name(row, 'a row', ierr)
  call MPI_Comm_get_name(row, name, length, ierr)
  if (name(1:length) /= 'a row' .or. length /= 5) bad = 2
  allocate (counts(n), places(n), all(n * (n + 1) / 2), mine(rank + 1))
  do i = 1, n
    counts(i) = i
    places(i) = i * (i - 1) / 2
  end do
  mine = rank
  call MPI_Allgatherv(mine, rank + 1, MPI_INTEGER, all, counts, places, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  do i = 1, n
    if (any(all(places(i) + 1:places(i) + counts(i)) /= i - 1)) bad = 3
  end do
  z = (1d0, 1d0)
  call MPI_Allreduce(z, product, 1, MPI_DOUBLE_COMPLEX, MPI_PROD, MPI_COMM_WORLD, ierr)
  if (abs(product - z**n) > 1d-9) bad = 4
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
  call MPI_Send(rank, 1, MPI_INTEGER, n, 0, MPI_COMM_WORLD, code)
  call MPI_Error_class(code, i, ierr)
  if (i /= MPI_ERR_RANK) bad = 5
  call MPI_Error_string(code, text, length, ierr)
  if (length < 5) bad = 6
  call MPI_Get_processor_name(host, length, ierr)
  if (length < 1 .or. MPI_Wtime() < start) bad = 7
  if (bad /= 0) print *, 'rank', rank, 'step', bad, 'is wrong'
  call MPI_Allreduce(MPI_IN_PLACE, bad, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
  if (rank == 0 .and. bad == 0) print *, 'use mpi is good'
  call MPI_Comm_free(row, ierr)
  call MPI_Comm_free(grid, ierr)
  call MPI_Finalize(ierr)
  if (bad /= 0) stop 1
end program
