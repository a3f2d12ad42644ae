// SPDX-License-Identifier: Apache-2.0

package detail

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/source"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// descriptorsPerRound is how many descriptors of a process are listed in one Read at
// most.
const descriptorsPerRound = 128

// listedPerItem is how many descriptors are listed at the cost of one item that
// is read.
const listedPerItem = 2

// Reader reads details. Its owner calls Close.
type Reader struct {
	now       func() time.Time
	processes map[uint64]*process // by handle
	diag      diag
	ownNet    uint64 // inode of our network namespace
}

// New returns a Reader that reads nothing yet.
func New() *Reader {
	r := &Reader{now: time.Now, processes: make(map[uint64]*process), diag: diag{fd: -1}}
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
	memory  pace
	nodes   pace
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

// kinds are what is read here, each in a way of its own, at the cost of so many items.
func kinds() []kind {
	return []kind{
		{series.TableSockets, (*Reader).readSockets}, {series.TablePipes, (*Reader).readPipes}, {series.TableMemory, (*Reader).readMemory},
		{series.TableMemoryNodes, (*Reader).readNodes},
	}
}

// kind is how a table is read, at most so many items of it.
type kind struct {
	table series.TableID
	read  func(r *Reader, p *process, most int, to *series.Details) (used int)
}

// Tables are those that are read here.
func (r *Reader) Tables() (tables []series.TableID) {
	for _, k := range kinds() {
		tables = append(tables, k.table)
	}
	return tables
}

// Read reads what is wanted of a process; see [source.Source]. What cannot be read
// says so in its own Error.
func (r *Reader) Read(of source.Process, wanted []series.TableID, room *source.Room, to *source.Measured) error {
	p, err := r.process(of)
	if err == nil {
		err = r.list(p, wanted, room)
	}
	if err != nil {
		room.Take(1)
		return refuse(wanted, err, &to.Details)
	}
	for _, k := range kinds() {
		if slices.Contains(wanted, k.table) {
			room.Take(k.read(r, p, max(1, room.Left()), &to.Details))
		}
	}
	if !p.held.Alive() {
		return procid.ErrGone // what was read under its number may be another's
	}
	return nil
}

// list goes on with the listing of descriptors, if some are wanted.
func (r *Reader) list(p *process, wanted []series.TableID, room *source.Room) error {
	if !slices.ContainsFunc(wanted, func(id series.TableID) bool {
		return id.Table().Of == attunev1.SubjectKind_SUBJECT_KIND_DESCRIPTOR
	}) {
		return nil
	}
	listed, err := p.table.list(descriptorsPerRound, r.now())
	room.Take((listed + listedPerItem - 1) / listedPerItem)
	return err
}

// process returns what is kept of a process, made when it is new.
func (r *Reader) process(w source.Process) (*process, error) {
	if p := r.processes[w.Handle]; p != nil {
		return p, nil
	}
	held, err := procid.Hold(w.Identity)
	if err != nil {
		return nil, err
	}
	dir := fmt.Sprintf("/proc/%d", w.Identity.PID)
	net := netNamespace(dir)
	p := &process{held: held, table: newTable(dir + "/fd"), ownNet: net != 0 && net == r.ownNet}
	r.processes[w.Handle] = p
	return p, nil
}

// refuse says of everything that is wanted why it cannot be read. [procid.ErrGone]
// of a process that has ended.
func refuse(wanted []series.TableID, err error, to *series.Details) error {
	if errors.Is(err, procid.ErrGone) {
		return err
	}
	for _, id := range wanted {
		to.Refuse(id, err.Error())
	}
	return nil
}
