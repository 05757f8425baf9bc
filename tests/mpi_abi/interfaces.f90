! The objects with an address of `use mpi_f08`, and its callbacks. Prints "ok" on rank 0.
program main
  use mpi_f08
  implicit none
  integer :: rank, size, got, ierror
  integer :: numbers(3)
  logical :: flag
  type(MPI_Status) :: status
  type(MPI_Comm) :: graph
  type(MPI_Request) :: requests(2)
  type(MPI_Op) :: op
  integer(kind=MPI_ADDRESS_KIND) :: value

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag)
  if (.not. flag .or. value < 32767) error stop 'MPI_TAG_UB'

  numbers = rank
  call MPI_Allreduce(MPI_IN_PLACE, numbers, 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (any(numbers /= size * (size - 1) / 2)) error stop 'MPI_IN_PLACE'

  call MPI_Isend(rank, 1, MPI_INTEGER, mod(rank + 1, size), 5, MPI_COMM_WORLD, requests(1))
  call MPI_Irecv(got, 1, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  if (got /= mod(rank + size - 1, size)) error stop 'MPI_STATUSES_IGNORE'
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, mod(rank + 1, size), 5, got, 1, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, &
                    MPI_COMM_WORLD, status)
  if (status%MPI_SOURCE /= got .or. status%MPI_TAG /= 5) error stop 'the status'
  call MPI_Get_count(status, MPI_INTEGER, got)
  if (got /= 1) error stop 'the count'
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, mod(rank + 1, size), 5, got, 1, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE)

  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [rank], MPI_UNWEIGHTED, 1, [rank], MPI_UNWEIGHTED, &
                                      MPI_INFO_NULL, .false., graph)
  call MPI_Dist_graph_neighbors_count(graph, numbers(1), numbers(2), flag)
  if (flag .or. numbers(1) /= 1) error stop 'MPI_UNWEIGHTED'

  call MPI_Op_create(smaller, .true., op)
  call MPI_Reduce(rank + 3, got, 1, MPI_INTEGER, op, 0, MPI_COMM_WORLD)
  if (rank == 0 .and. got /= 3) error stop 'the operation'
  call MPI_Op_free(op)

  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call MPI_Send(rank, 1, MPI_INTEGER, 4711, 0, MPI_COMM_WORLD, ierror)
  call MPI_Error_class(ierror, got)
  if (got /= MPI_ERR_RANK) error stop 'the error'
  call MPI_Finalize()
  if (rank == 0) print '(a)', 'ok'

contains
  subroutine smaller(in, inout, length, datatype)
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    type(c_ptr), value :: in, inout
    integer :: length
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    call c_f_pointer(in, a, [length])
    call c_f_pointer(inout, b, [length])
    b = min(a, b)
  end subroutine
end program
