// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

const (
	privateFolder  = 0o700
	privateSocket  = 0o600
	othersMayEnter = 0o077
)

// listen makes the socket. Between its creation and the change of its mode
// others are kept out by the folder; where the caller asks for a wider mode,
// whoever comes earlier has to pass Admit as well.
func listen(path string, mode fs.FileMode) (*net.UnixListener, error) {
	folder := filepath.Dir(path)
	if err := os.Mkdir(folder, privateFolder); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("folder of the start gate: %w", err)
	}
	if mode == 0 {
		mode = privateSocket
		if err := checkPrivate(folder); err != nil {
			return nil, err
		}
	}
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Net: "unixpacket", Name: path})
	if err != nil {
		return nil, fmt.Errorf("start gate: %w", err)
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(fmt.Errorf("mode of the start gate: %w", err), listener.Close())
	}
	return listener, nil
}

// checkPrivate makes sure that nobody else can reach or replace what is in a
// folder.
func checkPrivate(folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return fmt.Errorf("folder of the start gate: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() {
		return fmt.Errorf("folder of the start gate %s: not a folder", folder)
	}
	if info.Mode().Perm()&othersMayEnter != 0 {
		return fmt.Errorf("folder of the start gate %s is open to others (mode %#o): make it 0700", folder, info.Mode().Perm())
	}
	if own := os.Geteuid(); int(owner.Uid) != own {
		return fmt.Errorf("folder of the start gate %s belongs to user %d, not to %d", folder, owner.Uid, own)
	}
	return nil
}
