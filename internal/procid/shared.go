// SPDX-License-Identifier: Apache-2.0

package procid

import "golang.org/x/sys/unix"

// SharesMemory says whether two processes have one address space, as the child of vfork(2)
// and its parent have, or why the kernel does not tell: ESRCH for one that has ended, EPERM
// for one that the caller may not trace or where a filter forbids kcmp(2), ENOSYS without
// CONFIG_KCMP.
func SharesMemory(pid, other int) (bool, error) {
	return ThreadsShareMemory(LiveThreadOf(pid), LiveThreadOf(other))
}

// ThreadsShareMemory is SharesMemory of two threads. One that has ended has no memory, which is
// that of any other such thread to the kernel.
func ThreadsShareMemory(tid, other int) (bool, error) {
	const vm = 1 // KCMP_VM
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(tid), uintptr(other), vm, 0, 0, 0)
	if errno != 0 {
		return false, errno
	}
	return order == 0, nil
}
