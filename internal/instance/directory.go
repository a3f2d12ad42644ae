// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Directory makes the directory in which a service has its sockets or state, if
// it is not there. One that somebody else made, or can change, is refused: below
// /tmp everybody can be there first, and would have the service's sockets.
func Directory(path string, mode os.FileMode) error {
	_, err := os.Lstat(path)
	made := os.IsNotExist(err)
	if err := os.MkdirAll(path, mode); err != nil {
		return err
	}
	if made { // whatever the umask
		if err := os.Chmod(path, mode); err != nil {
			return err
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	switch {
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d: want root or user %d; give another directory", path, st.Uid, os.Geteuid())
	case st.Mode&0o022 != 0:
		return fmt.Errorf("%s may be changed by others: chmod go-w %s", path, path)
	}
	return nil
}
