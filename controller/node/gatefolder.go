// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// errOpenFolder says that everybody passes a folder of a start gate.
var errOpenFolder = errors.New("every user reaches the start gate: strangers are refused one by one, and who connects without end costs the session processor time, " +
	"which ends it at last; have the directory of sockets in a file system with access control lists")

// makeGateFolder makes the folder of a session's start gate, where only the session's user may
// pass but not look, whatever the umask. A service without the right to give files away says so by an
// access control list. With [errOpenFolder] the folder can be used.
func makeGateFolder(path string, uid uint32) error {
	const own, passing = 0o700, 0o711
	err := os.Mkdir(path, own)
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = os.Chmod(path, own)
	}
	if err != nil || int(uid) == os.Geteuid() {
		return err
	}
	if err := unix.Setxattr(path, "system.posix_acl_access", accessList(uid), 0); err != nil {
		return errors.Join(fmt.Errorf("%w: %w", errOpenFolder, err), os.Chmod(path, passing))
	}
	return nil
}

// accessList lets the owner do all in a folder, a user pass, and nobody else do anything, in the
// form of linux/posix_acl_xattr.h.
func accessList(uid uint32) []byte {
	const version, nobody = 2, ^uint32(0)
	const owner, user, group, mask, others = 0x01, 0x02, 0x04, 0x10, 0x20
	const all, pass = 7, 1
	list := binary.LittleEndian.AppendUint32(nil, version)
	for _, entry := range []struct {
		tag, may uint16
		id       uint32
	}{{owner, all, nobody}, {user, pass, uid}, {group, 0, nobody}, {mask, pass, nobody}, {others, 0, nobody}} {
		list = binary.LittleEndian.AppendUint16(list, entry.tag)
		list = binary.LittleEndian.AppendUint16(list, entry.may)
		list = binary.LittleEndian.AppendUint32(list, entry.id)
	}
	return list
}
