! Files with use mpi_f08: a view of alternating blocks, calls of each kind, hints, errors that return.
program with_files_f08
  use mpi_f08
  implicit none
  type(MPI_File) :: file
  type(MPI_Datatype) :: blocks, tile, etype, filetype
  type(MPI_Status) :: status
  type(MPI_Request) :: request
  type(MPI_Info) :: info
  type(MPI_Group) :: group
  integer(kind=MPI_OFFSET_KIND) :: disp, offset, bytes
  integer(kind=MPI_ADDRESS_KIND) :: lb, extent
  integer :: rank, n, i, bad, all, code, class, count, amode, size_of_group
  integer :: values(20)
  integer, asynchronous :: back(20)
  logical :: flag
  character(len=MPI_MAX_DATAREP_STRING) :: datarep
  character(len=MPI_MAX_INFO_VAL - 1) :: hint
  bad = 0
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n)

  ! Opening.
  call MPI_File_open(MPI_COMM_WORLD, 'no such file', MPI_MODE_RDONLY, MPI_INFO_NULL, file, code)
  call MPI_Error_class(code, class)
  if (class /= MPI_ERR_NO_SUCH_FILE) call complain(1)
  call MPI_Info_create(info)
  call MPI_Info_set(info, 'cb_buffer_size', '65536')
  call MPI_File_open(MPI_COMM_WORLD, 'fortran.dat  ', ior(MPI_MODE_RDWR, MPI_MODE_CREATE), info, file, code)
  call MPI_Info_free(info)
  if (code /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 1)
  call MPI_File_get_amode(file, amode)
  if (amode /= ior(MPI_MODE_RDWR, MPI_MODE_CREATE)) call complain(2)
  call MPI_File_get_info(file, info)
  call MPI_Info_get(info, 'cb_buffer_size', len(hint), hint, flag)
  if (.not. flag .or. hint /= '65536') call complain(3)
  call MPI_File_set_info(file, info)
  call MPI_Info_free(info)
  call MPI_File_get_group(file, group)
  call MPI_Group_size(group, size_of_group)
  if (size_of_group /= n) call complain(4)
  call MPI_Group_free(group)

  ! A view in which the ranks' blocks of two alternate.
  call MPI_Type_contiguous(2, MPI_INTEGER, blocks)
  lb = 0
  extent = 8 * n
  call MPI_Type_create_resized(blocks, lb, extent, tile)
  call MPI_Type_commit(tile)
  disp = 8 * rank
  call MPI_File_set_view(file, disp, MPI_INTEGER, tile, 'native', MPI_INFO_NULL)
  disp = -1
  call MPI_File_get_view(file, disp, etype, filetype, datarep)
  if (disp /= 8 * rank .or. etype /= MPI_INTEGER .or. datarep /= 'native') call complain(5)
  call MPI_Type_free(filetype)
  values = [(1000 * rank + i, i = 1, 20)]
  call MPI_File_write_all(file, values, 20, MPI_INTEGER, status)
  call MPI_Get_count(status, MPI_INTEGER, count)
  if (count /= 20) call complain(6)
  call MPI_File_get_position(file, offset)
  if (offset /= 20) call complain(7)
  call MPI_File_get_byte_offset(file, offset, bytes)
  if (bytes /= 80 * n + 8 * rank) call complain(8)
  call MPI_File_sync(file)
  call MPI_Barrier(MPI_COMM_WORLD)
  offset = 0
  back = 0
  call MPI_File_iread_at(file, offset, back, 20, MPI_INTEGER, request)
  call MPI_Wait(request, status)
  if (any(back /= values)) call complain(9)
  back = 0
  call MPI_File_seek(file, offset, MPI_SEEK_SET)
  call MPI_File_read_all(file, back, 20, MPI_INTEGER, status)
  if (any(back /= values)) call complain(10)
  back = 0
  call MPI_File_seek(file, offset, MPI_SEEK_SET)
  call MPI_File_read_all_begin(file, back, 20, MPI_INTEGER)
  call MPI_File_read_all_end(file, back, status)
  if (any(back /= values)) call complain(11)
  back = 0
  call MPI_File_iread_at_all(file, offset, back, 20, MPI_INTEGER, request)
  call MPI_Wait(request, status)
  if (any(back /= values)) call complain(12)
  call MPI_File_get_type_extent(file, tile, extent)
  if (extent /= 8 * n) call complain(13)

  ! At this rank's own pointer, in the foreground and behind it.
  call MPI_File_seek(file, offset, MPI_SEEK_SET)
  call MPI_File_iwrite(file, values, 10, MPI_INTEGER, request)
  call MPI_Wait(request, status)
  call MPI_File_write(file, values(11), 10, MPI_INTEGER, status)
  call MPI_File_seek(file, -20_MPI_OFFSET_KIND, MPI_SEEK_CUR)
  back = 0
  call MPI_File_iread(file, back, 10, MPI_INTEGER, request)
  call MPI_Wait(request, status)
  call MPI_Get_count(status, MPI_INTEGER, count)
  if (count /= 10) call complain(14)
  call MPI_File_read(file, back(11), 10, MPI_INTEGER, status)
  if (any(back /= values)) call complain(15)
  call MPI_File_write_at_all(file, offset, values, 20, MPI_INTEGER, status)
  call MPI_Get_count(status, MPI_INTEGER, count)
  if (count /= 20) call complain(16)
  call MPI_Barrier(MPI_COMM_WORLD)

  ! All of the file; the shared pointer.
  disp = 0
  call MPI_File_set_view(file, disp, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL)
  call MPI_File_read_at_all(file, offset, back, 2 * n, MPI_INTEGER, status)
  if (any(back(1:2 * n:2) /= [(1000 * i + 1, i = 0, n - 1)])) call complain(17)
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_File_write_ordered(file, values, rank + 1, MPI_INTEGER, status)
  call MPI_File_get_position_shared(file, offset)
  call MPI_Barrier(MPI_COMM_WORLD)
  if (offset /= n * (n + 1) / 2) call complain(18)
  offset = 0
  call MPI_File_seek_shared(file, offset, MPI_SEEK_SET)
  call MPI_File_write_shared(file, values, 1, MPI_INTEGER, status)
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_File_read_at(file, offset, back, n, MPI_INTEGER, status)
  if (sum(back(1:n)) /= 500 * n * (n - 1) + n) call complain(19)
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_File_seek_shared(file, offset, MPI_SEEK_SET)
  back = 0
  call MPI_File_read_ordered(file, back, 1, MPI_INTEGER, status)
  call MPI_Reduce(back(1), all, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD)
  if (rank == 0 .and. all /= 500 * n * (n - 1) + n) call complain(20)
  call MPI_Barrier(MPI_COMM_WORLD)

  ! A portable representation, sizes, atomic mode.
  call MPI_File_set_view(file, disp, MPI_INTEGER, MPI_INTEGER, 'external32', MPI_INFO_NULL)
  offset = 20 * rank
  call MPI_File_write_at(file, offset, values, 20, MPI_INTEGER, status)
  back = 0
  call MPI_File_read_at(file, offset, back, 20, MPI_INTEGER, status)
  if (any(back /= values)) call complain(21)
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_File_set_atomicity(file, .true.)
  call MPI_File_get_atomicity(file, flag)
  if (.not. flag) call complain(22)
  bytes = 12345
  call MPI_File_set_size(file, bytes)
  bytes = 0
  call MPI_File_get_size(file, bytes)
  if (bytes /= 12345) call complain(23)
  call MPI_Barrier(MPI_COMM_WORLD)
  bytes = 20000
  call MPI_File_preallocate(file, bytes)
  bytes = 0
  call MPI_File_get_size(file, bytes)
  if (bytes /= 20000) call complain(24)

  ! Errors of a file return.
  offset = -1
  call MPI_File_seek(file, offset, MPI_SEEK_SET, code)
  if (code == MPI_SUCCESS) call complain(25)

  call MPI_Type_free(blocks)
  call MPI_Type_free(tile)
  call MPI_File_close(file)
  if (file /= MPI_FILE_NULL) call complain(26)
  if (rank == 0) then
    call MPI_File_delete('fortran.dat', MPI_INFO_NULL, code)
    if (code /= MPI_SUCCESS) call complain(27)
    call MPI_File_delete('fortran.dat', MPI_INFO_NULL, code)
    call MPI_Error_class(code, class)
    if (class /= MPI_ERR_NO_SUCH_FILE) call complain(28)
  end if
  call MPI_Reduce(bad, all, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD)
  if (rank == 0) print *, merge('files are good', 'files are bad ', all == 0)
  call MPI_Finalize()

contains

  subroutine complain(check)
    integer, intent(in) :: check
    print *, 'rank', rank, 'check', check
    bad = bad + 1
  end subroutine
end program
