// SPDX-License-Identifier: Apache-2.0

package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// attempt is a process of a session that was taken over: it makes a system call, of a number
// with arguments, and ends with the call's error.
func attempt(words []string) {
	if err := filter().Install(); err != nil {
		panic(err)
	}
	var call [7]uintptr
	for i, word := range words {
		n, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			panic(err)
		}
		call[i] = uintptr(n)
	}
	_, _, errno := unix.Syscall6(call[0], call[1], call[2], call[3], call[4], call[5], call[6])
	os.Exit(int(errno))
}

// TestTakenOver: whoever takes the process of a session over gets nothing done by the kernel
// that a controller does not need, and ends with what would change the machine.
func TestTakenOver(t *testing.T) {
	const ends unix.Errno = 1 << 8
	for name, tt := range map[string]struct {
		call []uintptr
		want unix.Errno
	}{
		"mount":                 {[]uintptr{unix.SYS_MOUNT}, ends},
		"mount by descriptor":   {[]uintptr{unix.SYS_FSOPEN}, ends},
		"load modules":          {[]uintptr{unix.SYS_FINIT_MODULE}, ends},
		"load kernels":          {[]uintptr{unix.SYS_KEXEC_LOAD}, ends},
		"enter namespaces":      {[]uintptr{unix.SYS_SETNS}, unix.EPERM},
		"make namespaces":       {[]uintptr{unix.SYS_UNSHARE, unix.CLONE_NEWUSER}, unix.EPERM},
		"fork into one":         {[]uintptr{unix.SYS_CLONE, unix.CLONE_NEWUSER | uintptr(unix.SIGCHLD)}, unix.EPERM},
		"the same another way":  {[]uintptr{unix.SYS_CLONE3}, unix.ENOSYS},
		"become a user":         {[]uintptr{unix.SYS_SETUID, 1000}, unix.EPERM},
		"become one of a group": {[]uintptr{unix.SYS_SETGROUPS, 1}, unix.EPERM},
		"use keys":              {[]uintptr{unix.SYS_KEYCTL}, unix.EPERM},
		"use io_uring":          {[]uintptr{unix.SYS_IO_URING_SETUP, 1}, unix.ENOSYS},
		"use TCP":               {[]uintptr{unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM}, unix.EPERM},
		"use packets":           {[]uintptr{unix.SYS_SOCKET, unix.AF_PACKET, unix.SOCK_RAW}, unix.EPERM},
		"change routes":         {[]uintptr{unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, unix.EPERM},
		"hear of processes":     {[]uintptr{unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_DGRAM, unix.NETLINK_CONNECTOR}, unix.EPERM},
		"list sockets":          {[]uintptr{unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG}, 0},
		"talk on this machine":  {[]uintptr{unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM}, 0},
		"write code": {[]uintptr{
			unix.SYS_MMAP, 0, 4096, unix.PROT_READ | unix.PROT_WRITE | unix.PROT_EXEC, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS,
		}, unix.EPERM},
		"halt others' faults": {[]uintptr{unix.SYS_USERFAULTFD}, unix.EPERM},
	} {
		t.Run(name, func(t *testing.T) {
			words := strings.Trim(fmt.Sprint(tt.call), "[]")
			out, err := exec.Command("/proc/self/exe", Word, "attempt "+words).CombinedOutput()
			got := unix.Errno(0)
			var ended *exec.ExitError
			switch {
			case errors.As(err, &ended) && ended.ExitCode() < 0:
				got = ends
			case errors.As(err, &ended):
				got = unix.Errno(ended.ExitCode())
			case err != nil:
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("%v, want %v: %s", got, tt.want, out)
			}
		})
	}
}
