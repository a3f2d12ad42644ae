// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
)

const (
	openedSource = "/proc of living processes: descriptors, executables, maps"
	// maxOpened bounds the files, some 300 bytes each.
	maxOpened = 65536
)

// opened asks again and again, beside the sampler, which files the processes have open: all
// that can be known of files where the kernel does not tell of calls. Nothing is asked of
// a file system, which may not answer.
type opened struct {
	asker asker[[]living]
	// What follows is the asker's until its end.
	files map[string]*openFile // by path
	looks map[incarnation]uint // how often a process was looked at
	full  bool                 // there was no room for a file
}

// openFile is a file, or those that had its path one after another.
type openFile struct {
	kind   string
	access access
	inodes []uint64
}

// access is what may be done with an open file.
type access uint8

const (
	toRead access = 1 << iota
	toWrite
)

func (a access) String() string {
	return [...]string{toRead: account.AccessRead, toWrite: account.AccessWrite, toRead | toWrite: account.AccessBoth}[a]
}

// incarnation is one process of those that have had its id.
type incarnation struct {
	pid   int
	start time.Duration
}

func newOpened() *opened {
	o := &opened{files: make(map[string]*openFile), looks: make(map[incarnation]uint)}
	o.asker = newAsker(1, o.answer)
	return o
}

// ask asks of processes, unless a question waits already. Does nothing with a nil receiver.
func (o *opened) ask(alive []living) {
	if o != nil {
		o.asker.ask(alive)
	}
}

func (o *opened) answer(alive []living) {
	before := o.looks
	o.looks = make(map[incarnation]uint, len(alive)) // of those that live
	for _, p := range alive {
		key := incarnation{p.pid, p.start}
		o.looks[key] = before[key] + 1
		o.look(p.pid, o.looks[key])
	}
}

// look takes the files of a process, the nth time. What is mapped is asked for ever more
// seldom: while the kernel tells, the process cannot map or unmap.
func (o *opened) look(pid int, nth uint) {
	pid = procid.LiveThreadOf(pid)
	dir := fmt.Sprintf("/proc/%d/", pid)
	descriptors, _ := procid.AppendNumbers(nil, dir+"fd") // of a process that ends there are none
	for _, fd := range descriptors {
		o.descriptor(pid, fd)
	}
	o.link(dir+"exe", toRead)
	if bits.OnesCount(nth) != 1 {
		return
	}
	mappings, _ := objfile.Mappings(pid)
	for _, m := range mappings {
		mapped := toRead
		if m.Write && !m.Private {
			mapped |= toWrite
		}
		if !strings.HasPrefix(m.Path, "/SYSV") && m.Path != "/dev/zero" { // memory that is shared
			o.add(m.Path, unix.S_IFREG, m.Inode, mapped)
		}
	}
}

// descriptor takes the file behind a descriptor, if it is one.
func (o *opened) descriptor(pid, fd int) {
	d, err := procid.ReadDescriptor(pid, fd)
	if err != nil || d.Flags&unix.O_PATH != 0 { // that can neither be read nor written
		return
	}
	link := fmt.Sprintf("/proc/%d/fd/%d", pid, fd)
	switch d.Flags & unix.O_ACCMODE {
	case unix.O_RDONLY:
		o.link(link, toRead)
	case unix.O_WRONLY:
		o.link(link, toWrite)
	case unix.O_RDWR:
		o.link(link, toRead|toWrite)
	}
}

// link takes the file to which a link of /proc leads.
func (o *opened) link(link string, how access) {
	var buffer [unix.PathMax]byte
	n, err := unix.Readlink(link, buffer[:])
	if err != nil || n == 0 || buffer[0] != '/' { // pipe:[1234] has no path
		return
	}
	var s unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, link, unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE|unix.STATX_INO|unix.STATX_NLINK, &s) != nil {
		return
	}
	path := string(buffer[:n])
	if s.Nlink == 0 {
		path = strings.TrimSuffix(path, " (deleted)")
	}
	o.add(path, uint32(s.Mode), s.Ino, how)
}

func (o *opened) add(path string, mode uint32, inode uint64, how access) {
	f := o.files[path]
	if f == nil {
		if len(o.files) >= maxOpened {
			o.full = true
			return
		}
		f = &openFile{kind: kindOf(mode)}
		o.files[path] = f
	}
	f.access |= how
	if !slices.Contains(f.inodes, inode) && len(f.inodes) < maxInodes {
		f.inodes = append(f.inodes, inode)
	}
}

// maxInodes bounds the files that have a path one after another.
const maxInodes = 64

// end returns the files that were seen, when the last question is answered: those that were
// open for writing first, and then by path.
func (o *opened) end() []account.File {
	o.asker.end()
	paths := slices.SortedFunc(maps.Keys(o.files), func(p, q string) int {
		return cmp.Or(cmp.Compare(o.files[q].access&toWrite, o.files[p].access&toWrite), cmp.Compare(p, q))
	})
	list := make([]account.File, 0, len(paths))
	for _, path := range paths {
		f := o.files[path]
		list = append(list, account.File{Path: path, Kind: f.kind, Access: f.access.String(), Inodes: f.inodes})
	}
	return list
}

// fill fills in the files; reason is why the kernel does not tell more.
func (o *opened) fill(a *account.Account, reason error) {
	a.Files = o.end()
	a.Note(account.Sampled, openedSource, "files")
	a.Missing["files"] = "those that were open or mapped when the processes were looked at, without bytes and calls: " + reason.Error()
	if o.full {
		a.Missing["files"] = fmt.Sprintf("the first %d of %s", maxOpened, a.Missing["files"])
	}
	for _, name := range networkFields {
		a.Missing[name] = reason.Error()
	}
}
