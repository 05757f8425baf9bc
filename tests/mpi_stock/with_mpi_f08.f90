! use mpi_f08: handles as types, statuses ignored and not, array sections, a window with passive target, an info.
program with_mpi_f08
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  type(MPI_Comm) :: dup
  type(MPI_Request) :: requests(2)
  type(MPI_Status) :: status, statuses(2)
  type(MPI_Datatype) :: pair
  type(MPI_Win) :: win
  type(MPI_Info) :: info
  type(c_ptr) :: base
  integer, pointer :: memory(:)
  integer :: rank, n, left, right, in, was, bad, count, got(4), out(8)
  logical :: flag
  character(len=20) :: value
  bad = 0
  call MPI_Init()
  call MPI_Comm_dup(MPI_COMM_WORLD, dup)
  call MPI_Comm_rank(dup, rank)
  call MPI_Comm_size(dup, n)
  if (dup == MPI_COMM_WORLD) bad = 1
  right = mod(rank + 1, n)
  left = mod(rank + n - 1, n)
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, right, 1, in, 1, MPI_INTEGER, left, 1, dup, status)
  if (in /= left .or. status%MPI_SOURCE /= left .or. status%MPI_TAG /= 1) bad = 2
  call MPI_Type_contiguous(2, MPI_INTEGER, pair)
  call MPI_Type_commit(pair)
  out = [1, 2, 3, 4, 5, 6, 7, 8] + 10 * rank
  call MPI_Irecv(got, 2, pair, left, 2, dup, requests(1))
  call MPI_Isend(out(1:7:2), 4, MPI_INTEGER, right, 2, dup, requests(2))
  call MPI_Waitall(2, requests, statuses)
  call MPI_Get_count(statuses(1), pair, count)
  if (count /= 2 .or. any(got /= [1, 3, 5, 7] + 10 * left)) bad = 3
  call MPI_Type_free(pair)
  call MPI_Recv(in, 1, MPI_INTEGER, MPI_PROC_NULL, 0, dup, MPI_STATUS_IGNORE)
  call MPI_Win_allocate(400_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, dup, base, win)
  call c_f_pointer(base, memory, [100])
  memory = 0
  call MPI_Barrier(dup)
  call MPI_Win_lock_all(0, win)
  call MPI_Fetch_and_op(1, was, MPI_INTEGER, 0, 3_MPI_ADDRESS_KIND, MPI_SUM, win)
  call MPI_Win_flush(0, win)
  if (was < 0 .or. was >= n) bad = 4
  call MPI_Barrier(dup)
  call MPI_Win_unlock_all(win)
  if (rank == 0) then
    if (memory(4) /= n) bad = 5
  end if
  call MPI_Win_free(win)
  call MPI_Info_create(info)
  call MPI_Info_set(info, 'key', 'a value')
  call MPI_Info_get(info, 'key', 20, value, flag)
  if (.not. flag .or. value /= 'a value') bad = 6
  call MPI_Info_free(info)
  call MPI_Comm_free(dup)
  if (bad /= 0) print *, 'rank', rank, 'step', bad, 'is wrong'
  call MPI_Allreduce(MPI_IN_PLACE, bad, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
  if (rank == 0 .and. bad == 0) print *, 'use mpi_f08 is good'
  call MPI_Finalize()
  if (bad /= 0) stop 1
end program
