! Attributes, error handlers, operations and status through libmpichfort.so.12: mpif.h's INTEGERs, the address kind of `use mpi`, and C's
! view of both. Prints "ok" on rank 0.
module callbacks
  use mpi
  implicit none
  integer :: copies = 0, deletes = 0, handled = 0
contains
  subroutine copy(comm, keyval, extra, value_in, value_out, flag, ierror)
    integer :: comm, keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra, value_in, value_out
    logical :: flag
    copies = copies + 1
    value_out = value_in + extra
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine

  subroutine remove(comm, keyval, value, extra, ierror)
    integer :: comm, keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: value, extra
    deletes = deletes + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine handler(comm, code)
    integer :: comm, code
    handled = handled + 1
  end subroutine

  subroutine larger(in, inout, count, type)
    integer :: count, type
    integer :: in(count), inout(count)
    inout = max(in, inout)
  end subroutine

  subroutine expect(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    if (condition) return
    write (0, *) 'expected ', what
    call exit(1)
  end subroutine
end module

program main
  use callbacks
  implicit none
  integer :: ierror, rank, size, keyval, dup, code, class, length, op, errhandler, largest
  integer :: numbers(2), result(2), status(MPI_STATUS_SIZE), weights
  integer(kind=MPI_ADDRESS_KIND) :: extra, value
  logical :: flag
  character(MPI_MAX_ERROR_STRING) :: text

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierror)

  ! Predefined: Fortran gets the value, not its address.
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierror)
  call expect(flag .and. value >= 32767, 'MPI_TAG_UB')
  call MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, largest, flag, ierror)
  call expect(flag .and. largest == value, 'MPI_TAG_UB as an INTEGER')
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, value, flag, ierror)
  call expect(flag .and. value == MPI_PROC_NULL, 'MPI_HOST')

  extra = 1000
  call MPI_Comm_create_keyval(copy, remove, keyval, extra, ierror)
  value = 5000000000_MPI_ADDRESS_KIND
  call MPI_Comm_set_attr(MPI_COMM_SELF, keyval, value, ierror)
  call MPI_Comm_dup(MPI_COMM_SELF, dup, ierror)
  value = 0
  call MPI_Comm_get_attr(dup, keyval, value, flag, ierror)
  call expect(flag .and. value == 5000001000_MPI_ADDRESS_KIND, 'the copied attribute')
  call MPI_Comm_free(dup, ierror)
  call MPI_Comm_delete_attr(MPI_COMM_SELF, keyval, ierror)
  call expect(copies == 1 .and. deletes == 2, 'one copy and two deletes')
  call MPI_Comm_free_keyval(keyval, ierror)
  call expect(keyval == MPI_KEYVAL_INVALID, 'MPI_KEYVAL_INVALID')

  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, extra, ierror)
  value = -7
  call MPI_Comm_set_attr(MPI_COMM_SELF, keyval, value, ierror)
  call MPI_Comm_dup(MPI_COMM_SELF, dup, ierror)
  value = 0
  call MPI_Comm_get_attr(dup, keyval, value, flag, ierror)
  call expect(flag .and. value == -7, 'the attribute that MPI_COMM_DUP_FN copied')
  call MPI_Comm_free(dup, ierror)
  call MPI_Comm_free_keyval(keyval, ierror)

  call MPI_Comm_dup(MPI_COMM_WORLD, dup, ierror)
  call MPI_Comm_create_errhandler(handler, errhandler, ierror)
  call MPI_Comm_set_errhandler(dup, errhandler, ierror)
  call MPI_Send(numbers, 1, MPI_INTEGER, 4711, 0, dup, code)
  call expect(handled == 1 .and. code /= MPI_SUCCESS, 'the error handler''s call')
  call MPI_Error_class(code, class, ierror)
  call expect(class == MPI_ERR_RANK, 'MPI_ERR_RANK')
  call MPI_Error_string(code, text, length, ierror)
  call expect(index(text(1:length), '4711') > 0, 'the rank in the text')
  call MPI_Errhandler_free(errhandler, ierror)

  call MPI_Op_create(larger, .true., op, ierror)
  numbers = (/rank, -rank/)
  call MPI_Allreduce(numbers, result, 2, MPI_INTEGER, op, MPI_COMM_WORLD, ierror)
  call expect(result(1) == size - 1 .and. result(2) == 0, 'the reduction')
  call MPI_Allreduce(MPI_IN_PLACE, numbers, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  call expect(numbers(1) == size * (size - 1) / 2, 'the reduction in place')
  call MPI_Op_free(op, ierror)

  call MPI_Sendrecv(rank, 1, MPI_INTEGER, mod(rank + 1, size), 3, largest, 1, MPI_INTEGER, mod(rank + size - 1, size), 3, &
                    MPI_COMM_WORLD, status, ierror)
  call expect(largest == mod(rank + size - 1, size) .and. status(MPI_SOURCE) == largest .and. status(MPI_TAG) == 3, 'the status')
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, mod(rank + 1, size), 3, largest, 1, MPI_INTEGER, mod(rank + size - 1, size), 3, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, (/rank/), MPI_UNWEIGHTED, 1, (/rank/), MPI_UNWEIGHTED, MPI_INFO_NULL, &
                                      .false., keyval, ierror)
  call MPI_Dist_graph_neighbors_count(keyval, numbers(1), numbers(2), flag, ierror)
  call expect(numbers(1) == 1 .and. numbers(2) == 1 .and. .not. flag, 'a graph without weights')
  call MPI_Finalize(ierror)
  if (rank == 0) print '(a)', 'ok'
end program
