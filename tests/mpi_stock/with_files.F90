! Files with mpif.h, or, compiled with USE_MPI, with use mpi: a view of alternating blocks, calls of each kind, hints, errors that return.
program with_files
#ifdef USE_MPI
  use mpi
  implicit none
#else
  implicit none
  include 'mpif.h'
#endif
  integer :: file, blocks, tile, status(MPI_STATUS_SIZE), request, group, info, handler, ierr
  integer(kind=MPI_OFFSET_KIND) :: disp, offset, bytes
  integer(kind=MPI_ADDRESS_KIND) :: lb, extent
  integer :: rank, n, i, bad, all, code, class, count, amode, etype, filetype, size_of_group
  integer :: values(20), back(20)
  logical :: flag
  character(len=MPI_MAX_DATAREP_STRING) :: datarep
  character(len=MPI_MAX_INFO_VAL) :: hint
  integer :: told
  external on_error
  common /errors/ told
  bad = 0
  told = 0
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)

  ! Opening.
  call MPI_File_open(MPI_COMM_WORLD, 'no such file', MPI_MODE_RDONLY, MPI_INFO_NULL, file, code)
  call MPI_Error_class(code, class, ierr)
  if (class /= MPI_ERR_NO_SUCH_FILE) call complain(1)
  call MPI_Info_create(info, ierr)
  call MPI_Info_set(info, 'cb_buffer_size', '65536', ierr)
  call MPI_File_open(MPI_COMM_WORLD, 'fortran.dat  ', ior(MPI_MODE_RDWR, MPI_MODE_CREATE), info, file, code)
  call MPI_Info_free(info, ierr)
  if (code /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  call MPI_File_get_amode(file, amode, ierr)
  if (amode /= ior(MPI_MODE_RDWR, MPI_MODE_CREATE)) call complain(2)
  call MPI_File_get_info(file, info, ierr)
  call MPI_Info_get(info, 'cb_buffer_size', MPI_MAX_INFO_VAL - 1, hint, flag, ierr)
  if (.not. flag .or. hint /= '65536') call complain(3)
  call MPI_File_set_info(file, info, ierr)
  call MPI_Info_free(info, ierr)
  call MPI_File_get_group(file, group, ierr)
  call MPI_Group_size(group, size_of_group, ierr)
  if (size_of_group /= n) call complain(4)
  call MPI_Group_free(group, ierr)

  ! A view in which the ranks' blocks of two alternate.
  call MPI_Type_contiguous(2, MPI_INTEGER, blocks, ierr)
  lb = 0
  extent = 8 * n
  call MPI_Type_create_resized(blocks, lb, extent, tile, ierr)
  call MPI_Type_commit(tile, ierr)
  disp = 8 * rank
  call MPI_File_set_view(file, disp, MPI_INTEGER, tile, 'native', MPI_INFO_NULL, ierr)
  disp = -1
  call MPI_File_get_view(file, disp, etype, filetype, datarep, ierr)
  if (disp /= 8 * rank .or. etype /= MPI_INTEGER .or. datarep /= 'native') call complain(5)
  call MPI_Type_free(filetype, ierr)
  values = [(1000 * rank + i, i = 1, 20)]
  call MPI_File_write_all(file, values, 20, MPI_INTEGER, status, ierr)
  call MPI_Get_count(status, MPI_INTEGER, count, ierr)
  if (count /= 20) call complain(6)
  call MPI_File_get_position(file, offset, ierr)
  if (offset /= 20) call complain(7)
  call MPI_File_get_byte_offset(file, offset, bytes, ierr)
  if (bytes /= 80 * n + 8 * rank) call complain(8)
  call MPI_File_sync(file, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  offset = 0
  back = 0
  call MPI_File_iread_at(file, offset, back, 20, MPI_INTEGER, request, ierr)
  call MPI_Wait(request, status, ierr)
  if (any(back /= values)) call complain(9)
  back = 0
  call MPI_File_seek(file, offset, MPI_SEEK_SET, ierr)
  call MPI_File_read_all_begin(file, back, 20, MPI_INTEGER, ierr)
  call MPI_File_read_all_end(file, back, status, ierr)
  if (any(back /= values)) call complain(10)
  back = 0
  call MPI_File_iread_at_all(file, offset, back, 20, MPI_INTEGER, request, ierr)
  call MPI_Wait(request, status, ierr)
  if (any(back /= values)) call complain(11)
  call MPI_File_get_type_extent(file, tile, extent, ierr)
  if (extent /= 8 * n) call complain(12)

  ! All of the file; the shared pointer.
  disp = 0
  call MPI_File_set_view(file, disp, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, ierr)
  call MPI_File_read_at_all(file, offset, back, 2 * n, MPI_INTEGER, status, ierr)
  if (any(back(1:2 * n:2) /= [(1000 * i + 1, i = 0, n - 1)])) call complain(13)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_File_write_ordered(file, values, rank + 1, MPI_INTEGER, status, ierr)
  call MPI_File_get_position_shared(file, offset, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  if (offset /= n * (n + 1) / 2) call complain(14)
  offset = 0
  call MPI_File_seek_shared(file, offset, MPI_SEEK_SET, ierr)
  call MPI_File_write_shared(file, values, 1, MPI_INTEGER, status, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_File_read_at(file, offset, back, n, MPI_INTEGER, status, ierr)
  if (sum(back(1:n)) /= 500 * n * (n - 1) + n) call complain(15)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)

  ! A portable representation, sizes, atomic mode.
  call MPI_File_set_view(file, disp, MPI_INTEGER, MPI_INTEGER, 'external32', MPI_INFO_NULL, ierr)
  offset = 20 * rank
  call MPI_File_write_at(file, offset, values, 20, MPI_INTEGER, status, ierr)
  back = 0
  call MPI_File_read_at(file, offset, back, 20, MPI_INTEGER, status, ierr)
  if (any(back /= values)) call complain(16)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_File_set_atomicity(file, .true., ierr)
  call MPI_File_get_atomicity(file, flag, ierr)
  if (.not. flag) call complain(17)
  bytes = 12345
  call MPI_File_set_size(file, bytes, ierr)
  bytes = 0
  call MPI_File_get_size(file, bytes, ierr)
  if (bytes /= 12345) call complain(18)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  bytes = 20000
  call MPI_File_preallocate(file, bytes, ierr)
  bytes = 0
  call MPI_File_get_size(file, bytes, ierr)
  if (bytes /= 20000) call complain(19)

  ! The program's own error handler.
  call MPI_File_create_errhandler(on_error, handler, ierr)
  call MPI_File_set_errhandler(file, handler, ierr)
  offset = -1
  call MPI_File_seek(file, offset, MPI_SEEK_SET, ierr)
  if (told /= 1) call complain(20)
  call MPI_Errhandler_free(handler, ierr)

  call MPI_Type_free(blocks, ierr)
  call MPI_Type_free(tile, ierr)
  call MPI_File_close(file, ierr)
  if (file /= MPI_FILE_NULL) call complain(21)
  if (rank == 0) call MPI_File_delete('fortran.dat', MPI_INFO_NULL, ierr)
  call MPI_Reduce(bad, all, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
  if (rank == 0) print *, merge('files are good', 'files are bad ', all == 0)
  call MPI_Finalize(ierr)

contains

  subroutine complain(check)
    integer, intent(in) :: check
    print *, 'rank', rank, 'check', check
    bad = bad + 1
  end subroutine
end program

subroutine on_error(file, code)
  integer :: file, code
  integer :: told
  common /errors/ told
  told = told + 1
end subroutine
