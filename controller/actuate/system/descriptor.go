// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// links is what the links in /proc/PID/fd begin with.
var links = map[uint32]string{unix.S_IFSOCK: "socket:[", unix.S_IFIFO: "pipe:["}

// descriptors lists the descriptors whose file is of one type (S_IFSOCK,
// S_IFIFO), one per file, ascending. Nothing is opened, and of files with a path,
// pipes among them, the link is read only: for one of a server that is out of reach
// nobody may ever answer.
func (t *Target) descriptors(scope Scope, fileType uint32) ([]Place, error) {
	dir := procid.Path(t.pid(), "fd")
	numbers, err := procid.AppendNumbers(nil, dir)
	if err != nil {
		return nil, fmt.Errorf("descriptors of process %d: %w", t.pid(), err)
	}
	slices.Sort(numbers)
	var places []Place
	for _, number := range numbers {
		link, err := os.Readlink(dir + "/" + strconv.Itoa(number))
		switch {
		case errors.Is(err, os.ErrPermission):
			return nil, fmt.Errorf("descriptors of process %d: %w", t.pid(), err)
		case err != nil || !strings.HasPrefix(link, links[fileType]):
			continue // closed meanwhile, or another kind
		}
		st, err := t.file(number)
		if err != nil || st.Mode&unix.S_IFMT != fileType {
			continue // the number is another file's by now
		}
		places = append(places, Place{Scope: scope, Number: number, Device: uint64(st.Dev), Inode: st.Ino})
	}
	seen := map[[2]uint64]bool{}
	return slices.DeleteFunc(places, func(p Place) bool {
		id := [2]uint64{p.Device, p.Inode}
		defer func() { seen[id] = true }()
		return seen[id]
	}), nil
}

// file is that of a descriptor of the process.
func (t *Target) file(number int) (unix.Stat_t, error) {
	return procid.FileOf(procid.Path(t.pid(), "fd/"+strconv.Itoa(number)))
}

// isFile says whether a file is the one of the place.
func (p Place) isFile(st unix.Stat_t) bool { return uint64(st.Dev) == p.Device && st.Ino == p.Inode }

// descriptorPlaces lists descriptors that suit, or finds one.
func descriptorPlaces(scope Scope, fileType uint32, what string, suits func(fd int) error) func(*Target, int) ([]Place, error) {
	return func(t *Target, on int) ([]Place, error) {
		if on != Everywhere {
			return oneDescriptor(t, on, scope, fileType, what, suits)
		}
		all, err := t.descriptors(scope, fileType)
		if err != nil {
			return nil, err
		}
		var places []Place
		for _, p := range all {
			fd, err := t.duplicate(p)
			if gone(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("fd %d: %w", p.Number, err)
			}
			if suits(fd) == nil {
				places = append(places, p)
			}
			unix.Close(fd)
		}
		if len(places) == 0 {
			return nil, fmt.Errorf("the process has no %s", what)
		}
		return places, nil
	}
}

func oneDescriptor(t *Target, number int, scope Scope, fileType uint32, what string, suits func(fd int) error) ([]Place, error) {
	st, err := t.file(number)
	if err != nil {
		if errors.Is(err, unix.ENOENT) {
			err = errors.New("it is not open")
		}
		return nil, fmt.Errorf("fd %d: %w", number, err)
	}
	if st.Mode&unix.S_IFMT != fileType {
		return nil, fmt.Errorf("fd %d is no %s", number, what)
	}
	place := Place{Scope: scope, Number: number, Device: uint64(st.Dev), Inode: st.Ino}
	fd, err := t.duplicate(place)
	if err != nil {
		return nil, fmt.Errorf("fd %d: %w", number, err)
	}
	defer unix.Close(fd)
	if err := suits(fd); err != nil {
		return nil, fmt.Errorf("fd %d is no %s: %w", number, what, err)
	}
	return []Place{place}, nil
}

// duplicate takes a descriptor of ours for a file of the process, which is looked for under
// other numbers if the process has closed its own.
func (t *Target) duplicate(p Place) (int, error) {
	fd, err := t.process.Duplicate(p.Number, p.isFile)
	if !gone(err) {
		return fd, err
	}
	all, listErr := t.descriptors(p.Scope, fileTypes[p.Scope])
	if listErr != nil {
		return -1, listErr
	}
	for _, other := range all {
		if other.Device == p.Device && other.Inode == p.Inode {
			return t.process.Duplicate(other.Number, p.isFile)
		}
	}
	return -1, errPlaceGone
}

var fileTypes = map[Scope]uint32{OnSockets: unix.S_IFSOCK, OnPipes: unix.S_IFIFO}

// descriptorSlot is a descriptor of ours for a file of the process.
type descriptorSlot struct {
	fd    int
	read  func(fd int) (string, error)
	write func(fd int, value string) error
}

func openDescriptor(read func(int) (string, error), write func(int, string) error) func(*Target, Place) (slot, error) {
	return func(t *Target, p Place) (slot, error) {
		fd, err := t.duplicate(p)
		if err != nil {
			return nil, err
		}
		return &descriptorSlot{fd: fd, read: read, write: write}, nil
	}
}

func (s *descriptorSlot) get() (string, error)   { return s.read(s.fd) }
func (s *descriptorSlot) set(value string) error { return s.write(s.fd, value) }
func (s *descriptorSlot) Close() error           { return unix.Close(s.fd) }
