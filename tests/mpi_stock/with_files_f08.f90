! Files with use mpi_f08: a view of alternating blocks, collective and nonblocking calls, the shared pointer, errors that return.
program with_files_f08
  use mpi_f08
  implicit none
  type(MPI_File) :: file
  type(MPI_Datatype) :: blocks, resized
  type(MPI_Status) :: status
  type(MPI_Request) :: request
  integer(kind=MPI_OFFSET_KIND) :: disp, where
  integer(kind=MPI_ADDRESS_KIND) :: lb, extent
  integer :: rank, n, i, bad, all, code, class, count
  integer :: values(20), back(20)
  bad = 0
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  call MPI_File_open(MPI_COMM_WORLD, 'no such file', MPI_MODE_RDONLY, MPI_INFO_NULL, file, code)
  call MPI_Error_class(code, class)
  if (class /= MPI_ERR_NO_SUCH_FILE) bad = bad + 1
  call MPI_File_open(MPI_COMM_WORLD, 'fortran.dat', ior(MPI_MODE_RDWR, ior(MPI_MODE_CREATE, MPI_MODE_DELETE_ON_CLOSE)), &
                     MPI_INFO_NULL, file, code)
  if (code /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 1)
  call MPI_Type_contiguous(2, MPI_INTEGER, blocks)
  lb = 0
  extent = 8 * n
  call MPI_Type_create_resized(blocks, lb, extent, resized)
  call MPI_Type_commit(resized)
  disp = 8 * rank
  call MPI_File_set_view(file, disp, MPI_INTEGER, resized, 'native', MPI_INFO_NULL)
  values = [(1000 * rank + i, i = 1, 20)]
  call MPI_File_write_all(file, values, 20, MPI_INTEGER, status)
  call MPI_Get_count(status, MPI_INTEGER, count)
  if (count /= 20) bad = bad + 1
  call MPI_Barrier(MPI_COMM_WORLD)
  where = 0
  back = 0
  call MPI_File_iread_at(file, where, back, 20, MPI_INTEGER, request)
  call MPI_Wait(request, status)
  if (any(back /= values)) bad = bad + 1
  disp = 0
  call MPI_File_set_view(file, disp, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL)
  call MPI_File_read_at_all(file, where, back, 2 * n, MPI_INTEGER, status)
  if (any(back(1:2 * n:2) /= [(1000 * i + 1, i = 0, n - 1)])) bad = bad + 1
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_File_write_ordered(file, values, rank + 1, MPI_INTEGER, status)
  call MPI_File_get_position_shared(file, where)
  call MPI_Barrier(MPI_COMM_WORLD)
  if (where /= n * (n + 1) / 2) bad = bad + 1
  call MPI_File_get_size(file, where)
  if (where /= 80 * n) bad = bad + 1
  call MPI_Type_free(blocks)
  call MPI_Type_free(resized)
  call MPI_File_close(file)
  if (file /= MPI_FILE_NULL) bad = bad + 1
  call MPI_Reduce(bad, all, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD)
  if (rank == 0) print *, merge('files are good', 'files are bad ', all == 0)
  call MPI_Finalize()
end program
