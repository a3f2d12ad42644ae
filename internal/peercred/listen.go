// SPDX-License-Identifier: Apache-2.0

package peercred

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/attune-hpc/attune/internal/unixmsg"
)

// everybody may connect: whoever does is asked who they are.
const everybody = 0o666

// Listen makes a Unix socket of a service for everybody, bounded by [Limit]. A socket that a
// process before has left there is replaced: the caller knows that it is alone.
func Listen(path string) (net.Listener, error) {
	if err := removeSocket(path); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: unixmsg.RefuseFiles}
	bound, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	listener, is := bound.(*net.UnixListener)
	if !is {
		return nil, errors.Join(fmt.Errorf("%T is no Unix socket", bound), bound.Close())
	}
	if err := os.Chmod(path, everybody); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	limited, err := Limit(listener, PerUser)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return limited, nil
}

// removeSocket removes a socket, and nothing else.
func removeSocket(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != os.ModeSocket {
		return fmt.Errorf("%s is there and no socket: remove it, or have the socket elsewhere", path)
	}
	return os.Remove(path)
}
