// SPDX-License-Identifier: Apache-2.0

// Package trusted says whether a file is as those have left it who may say what a service
// does.
package trusted

import (
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// File is the reason why others than the owners may have written a file, or why it is none
// from which settings are read. path is for the message.
func File(path string, st *unix.Stat_t, owners ...int) error {
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fmt.Errorf("%s is no regular file", path)
	case !slices.Contains(owners, int(st.Uid)):
		return fmt.Errorf("%s belongs to user %d: chown %d %s", path, st.Uid, owners[0], path)
	case st.Mode&0o022 != 0:
		return fmt.Errorf("%s may be written by others: chmod go-w %s", path, path)
	}
	return nil
}

// Open opens a file for reading that only its owner can have written, who is one of those:
// none for root and the process' own user.
func Open(path string, owners ...int) (*os.File, error) {
	if len(owners) == 0 {
		owners = []int{0, os.Geteuid()}
	}
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // it may be a pipe
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(int(file.Fd()), &st); err == nil {
		err = File(path, &st, owners...)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}
