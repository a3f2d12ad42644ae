// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// memfdSealing makes a memory file that can no longer shrink, as the one that
// DMLib shares with the controller must not.
func memfdSealing(*node) finding {
	fd, err := unix.MemfdCreate("attune-probe", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return refused(err, "", kernelFrom("3.17"))
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, int64(os.Getpagesize())); err != nil {
		return refused(err, "", "")
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		return refused(err, "", kernelFrom("3.17"))
	}
	if err := unix.Ftruncate(fd, 0); !errors.Is(err, unix.EPERM) {
		return unavailable("a sealed memory file can be made smaller", "")
	}
	return available("")
}

func wipeOnFork(*node) finding {
	memory, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return refused(err, "", "")
	}
	err = unix.Madvise(memory, unix.MADV_WIPEONFORK)
	if err := errors.Join(err, unix.Munmap(memory)); err != nil {
		return refused(err, "", kernelFrom("4.14"))
	}
	return available("")
}
