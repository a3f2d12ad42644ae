// SPDX-License-Identifier: Apache-2.0

package detail

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// settled is in how many listings, one after the other, a descriptor must be
// before it is borrowed.
const settled = 2

// ListEvery is the shortest time between the beginnings of two listings.
const ListEvery = 200 * time.Millisecond

// maxEntries bounds what is known of one process.
const maxEntries = 8192

// table knows which descriptors of a process are sockets and pipes. It is
// brought up to date piece by piece; a listing is as long as the process has
// descriptors. Files of any other kind are not touched: to ask after one that
// lies on a server which is out of reach may take for ever.
type table struct {
	path     string
	due      time.Time // when the next listing may begin
	dir      *os.File  // of the listing under way; nil between two
	listing  uint32
	entries  map[int]*entry
	complete bool // there were whole listings enough for what is in each of them
	beyond   beyond
	sockets  list
	pipes    list
}

// list is what the last whole listing found of one kind.
type list struct {
	total   int
	settled []*entry // one for each socket or end of a pipe, by descriptor
}

// entry is a descriptor of a socket or a pipe.
type entry struct {
	fd       int
	inode    uint64
	pipe     bool // otherwise it is a socket
	writes   bool // of a pipe: that end
	listing  uint32
	listings int     // in which it was seen as it is
	socket   *socket // nil: not looked at yet
}

// beyond counts descriptors that maxEntries leaves no room for.
type beyond struct{ sockets, pipes int }

func newTable(path string) table { return table{path: path, entries: make(map[int]*entry)} }

func (t *table) close() {
	if t.dir != nil {
		_ = t.dir.Close() // was read only
		t.dir = nil
	}
}

// list goes on with the listing, or begins one if it is due, and returns how many
// descriptors it has looked at.
func (t *table) list(most int, now time.Time) (looked int, err error) {
	if t.dir == nil {
		if now.Before(t.due) {
			return 0, nil
		}
		if t.dir, err = os.Open(t.path); err != nil {
			return 0, explain(err)
		}
		t.listing++
		t.due = now.Add(ListEvery)
	}
	names, err := t.dir.Readdirnames(most)
	if err != nil && !errors.Is(err, io.EOF) {
		t.close()
		return 0, explain(err)
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil {
			t.look(fd, name)
		}
	}
	if len(names) < most {
		t.close()
		t.finish()
	}
	return len(names), nil
}

// explain turns the error of a directory into what people should know.
func explain(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("descriptors can be seen by the process' owner and root only: %w", err)
	}
	return procid.GoneError(err)
}

// look takes in what a descriptor is now.
func (t *table) look(fd int, name string) {
	inode, pipe, ok := t.file(name)
	if !ok {
		return
	}
	if e := t.entries[fd]; e != nil && e.inode == inode && e.pipe == pipe {
		e.listing = t.listing
		e.listings++
		return
	}
	if _, known := t.entries[fd]; !known && len(t.entries) >= maxEntries {
		t.beyond.count(pipe)
		return
	}
	e := &entry{fd: fd, inode: inode, pipe: pipe, listing: t.listing, listings: 1}
	e.writes = pipe && t.writable(name)
	t.entries[fd] = e
}

func (b *beyond) count(pipe bool) {
	if pipe {
		b.pipes++
	} else {
		b.sockets++
	}
}

// file says which file a descriptor is of, if that is a socket or a pipe. The
// link is read, and not followed.
func (t *table) file(name string) (inode uint64, pipe, ok bool) {
	var buffer [64]byte
	n, err := unix.Readlinkat(int(t.dir.Fd()), name, buffer[:])
	if err != nil || n == len(buffer) {
		return 0, false, false
	}
	return parseLink(string(buffer[:n]))
}

// parseLink parses "socket:[12]" and "pipe:[12]".
func parseLink(link string) (inode uint64, pipe, ok bool) {
	rest, pipe := strings.CutPrefix(link, "pipe:[")
	if !pipe {
		if rest, ok = strings.CutPrefix(link, "socket:["); !ok {
			return 0, false, false
		}
	}
	number, ok := strings.CutSuffix(rest, "]")
	inode, err := strconv.ParseUint(number, 10, 64)
	return inode, pipe, ok && err == nil
}

// writable says whether a descriptor may be written to: the permissions of the
// link are those of the descriptor.
func (t *table) writable(name string) bool {
	var st unix.Stat_t
	err := unix.Fstatat(int(t.dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && st.Mode&unix.S_IWUSR != 0
}

// finish ends a listing: what was not in it is closed.
func (t *table) finish() {
	maps.DeleteFunc(t.entries, func(_ int, e *entry) bool { return e.listing != t.listing })
	type file struct {
		inode  uint64
		writes bool
	}
	seen := make(map[file]bool)
	t.sockets, t.pipes = list{total: t.beyond.sockets}, list{total: t.beyond.pipes}
	t.beyond = beyond{}
	for _, fd := range slices.Sorted(maps.Keys(t.entries)) {
		e := t.entries[fd]
		id := file{e.inode, e.writes}
		if seen[id] {
			continue
		}
		seen[id] = true
		into := &t.sockets
		if e.pipe {
			into = &t.pipes
		}
		into.total++
		if e.listings >= settled {
			into.settled = append(into.settled, e)
		}
	}
	t.complete = t.listing >= settled
}

// turn goes round a list, some entries each time. It goes by descriptors: the
// list changes.
type turn struct{ after int }

// next returns the entries that are next, at most so many.
func (t *turn) next(all []*entry, most int) []*entry {
	from, _ := slices.BinarySearchFunc(all, t.after, func(e *entry, fd int) int { return e.fd - fd })
	if from == len(all) {
		from = 0
	}
	part := all[from:min(from+most, len(all))]
	t.after = 0
	if len(part) > 0 && from+len(part) < len(all) {
		t.after = part[len(part)-1].fd + 1
	}
	return part
}
