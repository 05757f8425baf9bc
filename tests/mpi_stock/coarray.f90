! Coarrays over libcaf's one-sided communication: puts, gets with strides, sums, locks and atomics.
program coarray
  use, intrinsic :: iso_fortran_env
  implicit none
  integer :: field(10, 10)[*], total, me, n, right, left, i, bad
  integer :: column(10)
  integer(atomic_int_kind) :: counter[*]
  type(lock_type) :: guard[*]
  integer :: account[*]
  me = this_image()
  n = num_images()
  right = mod(me, n) + 1
  left = mod(me + n - 2, n) + 1
  bad = 0
  field = me
  counter = 0
  account = 0
  sync all
  field(:, 1)[right] = [(100 * me + i, i = 1, 10)]   ! contiguous
  field(2, 2:10)[right] = -me                        ! strided
  sync all
  if (any(field(:, 1) /= [(100 * left + i, i = 1, 10)])) bad = 1
  if (any(field(2, 2:10) /= -left) .or. any(field(3, 2:10) /= me)) bad = 2
  column = field(:, 2)[left]
  if (column(1) /= left .or. column(2) /= -(mod(left + n - 2, n) + 1)) bad = 3
  sync all
  total = me
  call co_sum(total)
  if (total /= n * (n + 1) / 2) bad = 4
  call atomic_add(counter[1], me)
  do i = 1, 5
    lock (guard[1])
    account[1] = account[1] + 1
    unlock (guard[1])
  end do
  sync all
  if (me == 1) then
    call atomic_ref(i, counter)
    if (i /= n * (n + 1) / 2) bad = 5
    if (account /= 5 * n) bad = 6
  end if
  if (bad /= 0) then
    print *, 'image', me, 'step', bad, 'is wrong'
    error stop 1
  end if
  sync all
  if (me == 1) print *, 'coarrays are good'
end program
