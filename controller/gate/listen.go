// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/attune-hpc/attune/internal/unixmsg"
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
	if err := prepare(filepath.Dir(path), mode); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: unixmsg.RefuseFiles} // DMLib sends none here
	bound, err := config.Listen(context.Background(), "unixpacket", path)
	if err != nil {
		return nil, fmt.Errorf("start gate: %w", err)
	}
	listener, is := bound.(*net.UnixListener)
	if !is {
		return nil, errors.Join(fmt.Errorf("%T is no Unix socket", bound), bound.Close())
	}
	if err := os.Chmod(path, cmp.Or(mode, privateSocket)); err != nil {
		return nil, errors.Join(fmt.Errorf("mode of the start gate: %w", err), listener.Close())
	}
	return listener, nil
}

// prepare makes the folder of a socket of that mode, or looks whether it will do.
func prepare(folder string, mode fs.FileMode) error {
	if err := os.Mkdir(folder, privateFolder); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("folder of the start gate: %w", err)
	}
	if mode == 0 {
		return checkPrivate(folder)
	}
	return nil
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
