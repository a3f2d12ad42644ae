// SPDX-License-Identifier: Apache-2.0

package objectivefiles

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/internal/objective"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/regular"
)

const (
	// mostLooked bounds the processes that are looked at in a second, mostOpen the descriptors
	// of one, and mostLinks those of all.
	mostLooked, mostOpen, mostLinks = 64, 4096, 16384
	// vainLooks is after how many looks without a file it is said that there is none.
	vainLooks = 3
)

// files finds the files of processes in which an objective is looked for. It belongs to the
// goroutine that measures.
type files struct {
	options Options
	spec    objective.Spec
	say     func(text string)
	looked  map[uint64]bool // processes all of whose output is read, by handle
	next    int             // in the list of processes
	links   int             // descriptors that were looked at in this second
	found   bool
	vain    int      // looks
	refused []string // why files are not read, each reason once
}

// more returns files that were not there at the last look, and perhaps others again.
func (f *files) more() (all []*os.File) {
	members := f.options.Members.List()
	f.links = 0
	for n := 0; n < min(mostLooked, len(members)) && f.links < mostLinks; n++ {
		f.next = (f.next + 1) % len(members)
		all = append(all, f.of(members[f.next])...)
	}
	maps.DeleteFunc(f.looked, func(handle uint64, _ bool) bool { return f.options.Members.Get(handle) == nil })
	if f.found = f.found || len(all) > 0; f.found || len(members) == 0 {
		return all
	}
	if f.vain++; f.vain == vainLooks {
		f.say(f.nothing())
	}
	return all
}

// nothing says why nothing is read.
func (f *files) nothing() string {
	if f.spec.Kind == objective.File {
		why := ""
		if len(f.refused) > 0 {
			why = ": it " + strings.Join(f.refused, ", ")
		}
		return fmt.Sprintf("no process was found that has %s open%s; it is looked for among the files that processes keep open", f.spec.Path, why)
	}
	return fmt.Sprintf("the output %s: %s; measure with file: or point:", strings.Join(f.refused, ", "), objective.OnlyFiles)
}

// of returns the files of a process.
func (f *files) of(m *member.Member) (all []*os.File) {
	if f.looked[m.Handle()] {
		return nil
	}
	if err := cmp.Or(m.OutOfReach(), f.options.Foreign(m.PID())); err != nil {
		f.refuse("cannot be looked at in a process that is left alone: " + err.Error())
		return nil
	}
	numbers := f.descriptors(m)
	for _, number := range numbers {
		file, err := f.open(m.PID(), number)
		if err != nil {
			f.refuse(err.Error())
			continue
		}
		all = append(all, file)
	}
	if f.spec.Kind == objective.Output && len(all) == len(numbers) { // else it may be redirected yet
		f.looked[m.Handle()] = true
	}
	return all
}

// mostReasons bounds the reasons that are said.
const mostReasons = 4

func (f *files) refuse(why string) {
	if len(f.refused) < mostReasons && !slices.Contains(f.refused, why) {
		f.refused = append(f.refused, why)
	}
}

// descriptors are those of a process that are looked at: its output, or what is open at
// the path.
func (f *files) descriptors(m *member.Member) (numbers []string) {
	if f.spec.Kind == objective.Output {
		return []string{"1", "2"}
	}
	dir, err := os.Open(fmt.Sprintf("/proc/%d/fd", m.PID()))
	if err != nil {
		return nil // it has ended
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(mostOpen) // those that there are
	if f.links += len(names); len(names) == mostOpen {
		f.refuse(fmt.Sprintf("may be beyond the first %d files that a process has open", mostOpen))
	}
	for _, name := range names {
		if target, err := os.Readlink(filepath.Join(dir.Name(), name)); err == nil && f.means(target) {
			numbers = append(numbers, name)
		}
	}
	return numbers
}

// means says whether a file is the one that the owner has named: by its path, or its end.
func (f *files) means(target string) bool {
	return target == f.spec.Path || !filepath.IsAbs(f.spec.Path) && strings.HasSuffix(target, "/"+strings.TrimPrefix(f.spec.Path, "./"))
}

// open opens a file that a process has open, for reading. By which number it has it may
// change at any time, so all is asked of what is held.
func (f *files) open(pid int, number string) (*os.File, error) {
	file, err := regular.OpenIf(fmt.Sprintf("/proc/%d/fd/%s", pid, number), func(held int) error { return f.mayRead(pid, held) })
	var at *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("is closed")
	case errors.As(err, &at):
		return nil, fmt.Errorf("cannot be read: %w", at.Err)
	}
	return file, err
}

// mayRead refuses what is no regular file of the session's user: what a process has open for
// writing its user need not be allowed to read, but for what is their own.
func (f *files) mayRead(pid, held int) error {
	link := fmt.Sprintf("/proc/self/fd/%d", held)
	known, err := procid.FileOf(link)
	if err != nil {
		return fmt.Errorf("cannot be looked at: %w", err)
	}
	switch {
	case known.Mode&unix.S_IFMT != unix.S_IFREG:
		return &regular.KindError{Kind: known.Mode & unix.S_IFMT}
	case known.Uid != f.options.User:
		return fmt.Errorf("is a file of user %d, and the session is of user %d", known.Uid, f.options.User)
	}
	return notServed(pid, held)
}

// mostMounts bounds what is read of the mounts that a process sees, bytes.
const mostMounts = 1 << 20

// notServed refuses a file that lies on a file system which a process serves: that may never
// answer. A file on no mount that is known counts as one.
func notServed(pid, fd int) error {
	d, err := procid.ReadDescriptor(os.Getpid(), fd)
	if err != nil {
		return fmt.Errorf("cannot be looked at: %w", err)
	}
	id := fmt.Appendf(nil, "%d ", d.Mount)
	for _, of := range []int{pid, 1} { // what was opened before its container was made lies on a mount of the host
		mounts, _ := procid.ReadFile(of, "mountinfo", mostMounts) // none that can be read is like none
		for line := range bytes.Lines(mounts) {
			if !bytes.HasPrefix(line, id) {
				continue
			}
			if _, kind, _ := bytes.Cut(line, []byte(" - ")); bytes.HasPrefix(kind, []byte("fuse")) {
				return errors.New("is a file that another process serves (FUSE)")
			}
			return nil
		}
	}
	return errors.New("lies on a mount that its process does not see")
}
