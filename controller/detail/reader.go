// SPDX-License-Identifier: Apache-2.0

package detail

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/proto/attune/series"
)

// descriptorsPerRound is how many descriptors of a process are listed in one Read at
// most.
const descriptorsPerRound = 128

// listedPerItem is how many descriptors are listed at the cost of one item that
// is read.
const listedPerItem = 2

// Options of a Reader.
type Options struct {
	// now tells the time; nil: time.Now.
	now func() time.Time
}

// Want says what is to be read of one process.
type Want struct {
	// Handle is the caller's name for the process image.
	Handle uint64
	// Identity is whom the handle means.
	Identity procid.Identity
	// Kinds are what is wanted; threads are none of this package's.
	Kinds []series.TableID
}

// Reader reads details. Its owner calls Close.
type Reader struct {
	options   Options
	processes map[uint64]*process // by handle
	diag      diag
	ownNet    uint64 // inode of our network namespace
}

// New returns a Reader that reads nothing yet.
func New(options Options) *Reader {
	if options.now == nil {
		options.now = time.Now
	}
	r := &Reader{options: options, processes: make(map[uint64]*process), diag: diag{fd: -1}}
	r.ownNet = netNamespace("/proc/thread-self")
	return r
}

// netNamespace returns which network namespace a task is in; 0: that cannot be
// told.
func netNamespace(dir string) uint64 {
	var st unix.Stat_t
	if unix.Stat(dir+"/ns/net", &st) != nil {
		return 0
	}
	return st.Ino
}

// process is what is kept of one between rounds.
type process struct {
	held    *procid.Process // so that no other process's descriptors are borrowed
	table   table
	sockets turn
	pipes   turn
	memory  memory
	ownNet  bool // sock_diag answers for it
}

// Keep forgets all processes but those of the given handles.
func (r *Reader) Keep(has func(handle uint64) bool) {
	for handle, p := range r.processes {
		if !has(handle) {
			p.close()
			delete(r.processes, handle)
		}
	}
}

// Close lets go of everything.
func (r *Reader) Close() error {
	r.Keep(func(uint64) bool { return false })
	return r.diag.close()
}

func (p *process) close() {
	p.table.close()
	_ = p.held.Close() // was opened for reading: there is nothing to lose
}

// Read reads what is wanted of a process, at most so many sockets and pipes. It
// returns nil if the process has ended, and how much of the bound was used. What
// cannot be read says so in its own Error.
func (r *Reader) Read(w Want, most int) (details *series.Details, used int) {
	p, err := r.process(w)
	if err != nil {
		return unreadable(w, err), 1
	}
	out := &series.Details{}
	sockets := slices.Contains(w.Kinds, series.TableSockets)
	pipes := slices.Contains(w.Kinds, series.TablePipes)
	if sockets || pipes {
		listed, err := p.table.list(descriptorsPerRound, r.options.now())
		if err != nil {
			return unreadable(w, err), 1
		}
		used += (listed + listedPerItem - 1) / listedPerItem
	}
	if sockets && p.table.complete {
		out.Sockets = r.readSockets(p, max(1, most-used))
		used += len(out.Sockets.Items)
	}
	if pipes && p.table.complete {
		out.Pipes = p.readPipes(max(1, most-used))
		used += len(out.Pipes.Items)
	}
	if slices.Contains(w.Kinds, series.TableMemory) {
		if out.Memory = p.memory.read(w.Identity.PID, r.options.now); out.Memory != nil {
			used++
		}
	}
	if !p.held.Alive() {
		return nil, used // what was read under its number may be another's
	}
	return out, used
}

// process returns what is kept of a process, made when it is new.
func (r *Reader) process(w Want) (*process, error) {
	if p := r.processes[w.Handle]; p != nil {
		return p, nil
	}
	held, err := procid.Open(w.Identity.PID)
	if err != nil {
		return nil, err
	}
	if !held.Identity().SameProcess(w.Identity) {
		return nil, errors.Join(fmt.Errorf("pid %d: %w", w.Identity.PID, procid.ErrGone), held.Close())
	}
	dir := fmt.Sprintf("/proc/%d", w.Identity.PID)
	net := netNamespace(dir)
	p := &process{held: held, table: newTable(dir + "/fd"), ownNet: net != 0 && net == r.ownNet}
	r.processes[w.Handle] = p
	return p, nil
}

// unreadable says of everything that is wanted why it cannot be read; nil of a
// process that has ended.
func unreadable(w Want, err error) *series.Details {
	if errors.Is(err, procid.ErrGone) {
		return nil
	}
	out := &series.Details{}
	for _, kind := range w.Kinds {
		switch kind {
		case series.TableSockets:
			out.Sockets = &series.Rows[series.Socket]{Error: err.Error()}
		case series.TablePipes:
			out.Pipes = &series.Rows[series.Pipe]{Error: err.Error()}
		case series.TableMemory:
			out.Memory = &series.Memory{Error: err.Error()}
		}
	}
	return out
}
