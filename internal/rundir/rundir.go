// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// lockName is the file that is locked while the run lives.
	lockName = "lock"
	// prefix of run directories; what else lies beside them is left alone.
	prefix = "run-"
	// maxPath bounds the path of a run directory: a Unix socket's path has
	// 107 bytes, and those of tunlets lie one level deeper.
	maxPath = 60
)

// Dir is the private directory of one run.
type Dir struct {
	// Path is absolute, with mode 0700.
	Path string

	lock *os.File
}

// Create makes the directory of a run, and removes those of dead runs beside
// it. The error names every place that was tried.
func Create(u User) (*Dir, error) {
	var errs []error
	for _, base := range u.runtimeBases() {
		dir, err := createBelow(u, base)
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("no place for a runtime directory, set TMPDIR to a short path: %w", errors.Join(errs...))
}

func createBelow(u User, base string) (*Dir, error) {
	if u.checkOwn(base) == nil { // a link in another user's base may lead to any file of this one
		removeStale(base)
	}
	path, err := makeBelow(u, base)
	if err != nil {
		return nil, err
	}
	if len(path) > maxPath {
		return nil, errors.Join(fmt.Errorf("%s is too long for sockets", base), os.Remove(path))
	}
	lock, err := lock(filepath.Join(path, lockName))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return &Dir{Path: path, lock: lock}, nil
}

// makeBelow makes a directory in the base, which another run that ends may remove
// between the two steps: then both are done again.
func makeBelow(u User, base string) (path string, err error) {
	for range 100 {
		if err = u.own(base, 0o700); err == nil {
			path, err = os.MkdirTemp(base, prefix)
		}
		if !errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	return path, err
}

// Socket returns the path of a socket in the directory.
func (d *Dir) Socket(name string) string { return SocketIn(d.Path, name) }

// Tag is a short text that no other run directory beside it has.
func (d *Dir) Tag() string { return strings.TrimPrefix(filepath.Base(d.Path), prefix) }

// Remove removes the directory with all that is in it, but for a library that a process
// may still load, and the directory above, if no other run has anything in it.
func (d *Dir) Remove() error {
	return errors.Join(remove(d.Path), d.lock.Close())
}

// lock creates the file with its lock taken: under its name it is never seen
// without.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".new", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(&os.PathError{Op: "flock", Path: path, Err: err}, f.Close())
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// removeStale removes the directories whose process is dead. One that is being
// made at this moment has no lock file yet and is left alone.
func removeStale(base string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), prefix) {
			continue
		}
		path := filepath.Join(base, entry.Name())
		f, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = remove(path) // the next run tries again
		}
		_ = f.Close()
	}
}
