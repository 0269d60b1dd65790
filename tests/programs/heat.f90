! A Fortran kernel: heat on a plate by relaxation, then a power iteration. Argument: number of steps (default 60).
module plate
  implicit none
  integer, parameter :: n = 300
contains
  subroutine relax(t, next)
    real(8), intent(in) :: t(n, n)
    real(8), intent(out) :: next(n, n)
    integer :: i, j
    next = t
    do j = 2, n - 1
      do i = 2, n - 1
        next(i, j) = 0.25d0 * (t(i-1, j) + t(i+1, j) + t(i, j-1) + t(i, j+1))
      end do
    end do
  end subroutine relax

  function residual(t, next) result(r)
    real(8), intent(in) :: t(n, n), next(n, n)
    real(8) :: r
    r = maxval(abs(next - t))
  end function residual

  subroutine multiply(m, v, w)
    real(8), intent(in) :: m(n, n), v(n)
    real(8), intent(out) :: w(n)
    integer :: j
    w = 0
    do j = 1, n
      w = w + m(:, j) * v(j)
    end do
  end subroutine multiply

  function eigenvalue(m, rounds) result(lambda)
    real(8), intent(in) :: m(n, n)
    integer, intent(in) :: rounds
    real(8) :: lambda, v(n), w(n)
    integer :: k
    v = 1
    lambda = 0
    do k = 1, rounds
      call multiply(m, v, w)
      lambda = sqrt(sum(w * w))
      v = w / max(lambda, 1d-30)
    end do
  end function eigenvalue
end module plate

program heat
  use plate
  implicit none
  real(8), allocatable :: t(:, :), next(:, :)
  real(8) :: r
  integer :: step, steps, status
  character(len=32) :: argument
  steps = 60
  call get_command_argument(1, argument, status=status)
  if (status == 0) read (argument, *) steps
  allocate (t(n, n), next(n, n))
  t = 0
  t(1, :) = 100
  t(:, 1) = 50
  r = 0
  do step = 1, steps
    call relax(t, next)
    r = residual(t, next)
    t = next
  end do
  print '(f12.6, f14.4)', r, eigenvalue(t, steps)
end program heat
