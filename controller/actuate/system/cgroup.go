// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/cgroup"
)

// cgroupPlace finds the cgroup of a process in the hierarchy that has a
// controller, and refuses one that others share.
func cgroupPlace(controller string, version int, file string) func(*Target, int) ([]Place, error) {
	return func(t *Target, _ int) ([]Place, error) {
		dir, err := t.cgroupDir(controller, version)
		if err != nil {
			return nil, err
		}
		var st unix.Stat_t
		if err := unix.Stat(dir, &st); err != nil {
			return nil, &fs.PathError{Op: "stat", Path: dir, Err: err}
		}
		if err := unix.Access(filepath.Join(dir, file), unix.F_OK); err != nil {
			return nil, fmt.Errorf("%s has no %s: the root cgroup never has, others where controller %s is not enabled", dir, file, controller)
		}
		if err := t.mayShare(dir); err != nil {
			return nil, err
		}
		return []Place{{Scope: OnCgroup, Path: dir, Device: uint64(st.Dev), Inode: st.Ino}}, nil
	}
}

// cgroupDir is the directory of the cgroup of a process in the hierarchy that
// has a controller: of one version, or of that which there is for version 0.
func (t *Target) cgroupDir(controller string, version int) (string, error) {
	membership, mounts, err := cgroup.Texts(t.pid())
	if err != nil {
		return "", err
	}
	hierarchy := nameIn(1, controller)
	path, found := cgroup.Path(membership, hierarchy)
	switch {
	case found && version == 2:
		return "", otherVersionError(hierarchy, 1)
	case !found && version == 1:
		return "", otherVersionError(nameIn(2, controller), 2)
	case !found:
		hierarchy = "" // one for all controllers
		if path, found = cgroup.Path(membership, hierarchy); !found {
			return "", fmt.Errorf("controller %s is not on this node", controller)
		}
	}
	dir, found := cgroup.Dir(mounts, hierarchy, path)
	if !found {
		return "", fmt.Errorf("cgroup %s is not mounted here", path)
	}
	return dir, nil
}

// nameIn is what a controller is called in a version.
func nameIn(version int, controller string) string {
	switch {
	case version == 1 && controller == "io":
		return "blkio"
	case version == 2 && controller == "blkio":
		return "io"
	}
	return controller
}

// otherVersionError says where a controller is, and which knobs it has there.
func otherVersionError(controller string, version int) error {
	var names []string
	for _, f := range cgroupFiles() {
		if f.controller == controller && f.version == version {
			names = append(names, "cgroup."+f.name)
		}
	}
	return fmt.Errorf("controller %s is in cgroup v%d on this node; there are %s", controller, version, strings.Join(names, ", "))
}

// mayShare refuses a cgroup that holds processes outside the job: they would
// be changed too.
func (t *Target) mayShare(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err != nil || entry.IsDir() || entry.Name() != "cgroup.procs" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err // a threaded cgroup's list cannot be read: not known to be ours
		}
		for line := range strings.Lines(string(data)) {
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil || pid != t.pid() && (t.inJob == nil || !t.inJob(pid)) {
				return fmt.Errorf("cgroup %s also holds process %s, outside the job", dir, strings.TrimSpace(line))
			}
		}
		return nil
	})
}

// cgroupSlot is a file of a cgroup that is held by its directory.
type cgroupSlot struct {
	dir    int
	file   string
	prefix string
}

func openCgroup(file, prefix string) func(*Target, Place) (slot, error) {
	return func(_ *Target, p Place) (slot, error) {
		fd, err := unix.Open(p.Path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			return nil, errPlaceGone
		}
		if err != nil {
			return nil, err
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || !p.isFile(st) {
			unix.Close(fd)
			return nil, errors.Join(err, errPlaceGone)
		}
		return &cgroupSlot{dir: fd, file: file, prefix: prefix}, nil
	}
}

func (s *cgroupSlot) openFile(flags int) (*os.File, error) {
	fd, err := unix.Openat(s.dir, s.file, flags|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		err = errPlaceGone
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), s.file), nil
}

// get returns the content; of a file with several lines, the one with prefix.
func (s *cgroupSlot) get() (string, error) {
	file, err := s.openFile(unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer file.Close()
	buf := make([]byte, os.Getpagesize())
	n, err := file.Read(buf)
	if err != nil && n == 0 {
		return "", nil //nolint:nilerr // an empty file, as cpuset.cpus may be
	}
	for line := range strings.Lines(string(buf[:n])) {
		if value, ok := strings.CutPrefix(line, s.prefix); ok {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("%s holds %q", s.file, strings.TrimSpace(string(buf[:n])))
}

// set writes a value. Version 2 has no CPUs of its own in a new cpuset, which
// are then its parent's, but takes that back only while there is no process in
// it; all CPUs there can ever be are the same.
func (s *cgroupSlot) set(value string) error {
	err := s.write(value)
	if value == "" && errors.Is(err, unix.ENOSPC) {
		return s.write(possibleCPUs())
	}
	return err
}

func (s *cgroupSlot) write(value string) error {
	file, err := s.openFile(unix.O_WRONLY)
	if err != nil {
		return err
	}
	_, err = file.WriteString(s.prefix + value + "\n")
	return errors.Join(err, file.Close())
}

func (s *cgroupSlot) Close() error { return unix.Close(s.dir) }
