// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// errNotOurs says that a descriptor is not what it should be.
var errNotOurs = errors.New("not an empty memory file of the process")

// openMemory opens a memory file that a thread has open. Who says which
// descriptor that is may be an enemy, and we root: the file is looked at before
// it is opened for writing, and must be one that memfd_create(2) has just made
// for the user that the process runs as.
func openMemory(pid, tid, fd, uid int) (*os.File, error) {
	way := fmt.Sprintf("/proc/%d/task/%d/fd/%d", pid, tid, fd)
	reference, err := unix.Open(way, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", way, err)
	}
	defer unix.Close(reference)
	if err := isFreshMemory(reference, uid); err != nil {
		return nil, fmt.Errorf("%s: %w", way, err)
	}
	file, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", reference), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	const closed = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if seals, err := unix.FcntlInt(file.Fd(), unix.F_GET_SEALS, 0); err != nil || seals&closed != 0 {
		return nil, errors.Join(errNotOurs, err, file.Close())
	}
	return file, nil
}

// isFreshMemory compares a file with a memory file of our own: all lie on one
// mount that no path leads to.
func isFreshMemory(fd, uid int) error {
	own, err := unix.MemfdCreate("attune-compare", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(own)
	var model, st unix.Stat_t
	if err := errors.Join(unix.Fstat(own, &model), unix.Fstat(fd, &st)); err != nil {
		return err
	}
	regular := st.Mode&unix.S_IFMT == unix.S_IFREG
	if !regular || st.Dev != model.Dev || st.Nlink != 0 || st.Size != 0 || int(st.Uid) != uid {
		return errNotOurs
	}
	return nil
}
