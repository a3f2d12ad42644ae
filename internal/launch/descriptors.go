// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Inherited lists the descriptors above 2 that a child of this process gets:
// those it was started with, when called before it opens anything (all that Go
// opens is close-on-exec).
func Inherited() []int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	var list []int
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= 2 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			list = append(list, fd)
		}
	}
	return list
}

// LetGo gives up this process's own hold on what it inherited, once the
// program has it: when the program closes its end of a pipe, the other side
// must see that. Standard input and output become /dev/null, and so does
// standard error unless it is needed for the report.
func LetGo(inherited []int, keepStderr bool) error {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("open", err)
	}
	defer unix.Close(null)
	standard := []int{0, 1, 2}
	if keepStderr {
		standard = standard[:2]
	}
	for _, fd := range standard {
		if err := unix.Dup3(null, fd, unix.O_CLOEXEC); err != nil {
			return os.NewSyscallError("dup3", err)
		}
	}
	for _, fd := range inherited {
		_ = unix.Close(fd)
	}
	return nil
}
