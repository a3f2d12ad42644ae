// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrForeign means that a memory file is not, or did not stay, as New makes it.
var ErrForeign = errors.New("not a memory file as this controller makes them")

// seals fix the size of a file for good.
const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// seal fixes the size of a file, and takes all of its memory if committed. Whoever else
// has the file open may give it another size until the seals are on, so its size is
// looked at afterwards.
func seal(file *os.File, size int64, committed bool) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err == nil && uint64(size) > limit.Cur {
		return fmt.Errorf("memory file of %d bytes: files may have %d (ulimit -f)", size, limit.Cur)
	}
	if err := file.Truncate(size); err != nil {
		return fmt.Errorf("size memory file to %d bytes: %w", size, err)
	}
	if committed {
		if err := commit(file, size); err != nil {
			return err
		}
	}
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return fmt.Errorf("seal memory file: %w", err)
	}
	return checkSealed(file, size)
}

// checkSealed makes sure that the file has its size and keeps it: an access
// behind its end would kill this process.
func checkSealed(file *os.File, size int64) error {
	var info unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &info); err != nil {
		return fmt.Errorf("%w: %w", ErrForeign, err)
	}
	have, err := unix.FcntlInt(file.Fd(), unix.F_GET_SEALS, 0)
	if err != nil || have&seals != seals || info.Size != size {
		return fmt.Errorf("%w: %d bytes with seals %#x, want %d with %#x", ErrForeign, info.Size, have, size, seals)
	}
	return nil
}
