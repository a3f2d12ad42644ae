// SPDX-License-Identifier: Apache-2.0

package counters

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/source"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/proto/attune/series"
)

const (
	// threadsPerProcess bounds the threads of a process that are counted.
	threadsPerProcess = 64
	// maxDescriptors bounds the descriptors of all processes: a user's limit may be
	// 1,024, of which others need some.
	maxDescriptors = 768
	// openItems is what it costs to open a thread, in items of source.Room; reading one
	// costs an item.
	openItems = 6
)

// Counters is the source of the table thread_counters. The zero value is ready. Its
// owner calls Close.
type Counters struct {
	processes   map[uint64]*process // by handle
	descriptors int
	ways        ways
}

// process is one whose threads are counted.
type process struct {
	held    *procid.Process
	threads []*thread // in the order found
}

// Tables implements [source.Source].
func (c *Counters) Tables() []series.TableID {
	return []series.TableID{series.TableThreadCounters}
}

// Read reads the counters of a process' threads; see [source.Source].
func (c *Counters) Read(of source.Process, _ []series.TableID, room *source.Room, to *source.Measured) error {
	p, err := c.process(of)
	var rows *series.Rows[series.ThreadCounter]
	if err == nil {
		rows, err = c.read(p, room)
	}
	switch {
	case errors.Is(err, procid.ErrGone):
		return err
	case err != nil:
		to.Details.Refuse(series.TableThreadCounters, err.Error())
		return nil
	}
	if !p.held.Alive() {
		return procid.ErrGone // threads of that number may be another's
	}
	to.Details.ThreadCounters = rows
	return nil
}

func (c *Counters) process(of source.Process) (*process, error) {
	if p := c.processes[of.Handle]; p != nil {
		return p, nil
	}
	held, err := procid.Hold(of.Identity)
	if err != nil {
		return nil, err
	}
	if c.processes == nil {
		c.processes = make(map[uint64]*process)
	}
	p := &process{held: held}
	c.processes[of.Handle] = p
	return p, nil
}

// read takes in threads that are new, reads all, and lets go of those that have ended,
// whose last counts are among the rows.
func (c *Counters) read(p *process, room *source.Room) (*series.Rows[series.ThreadCounter], error) {
	tids, err := procid.Threads(p.held.PID())
	if err != nil {
		return nil, err
	}
	var ended []*thread
	p.threads = slices.DeleteFunc(p.threads, func(t *thread) bool {
		over := t.ended(p.held.PID())
		if over {
			ended = append(ended, t)
		}
		return over
	})
	rows := &series.Rows[series.ThreadCounter]{Total: len(tids), Error: c.takeIn(p, tids, room)}
	room.Take(len(p.threads))
	defer c.letGo(ended)
	for _, t := range slices.Concat(p.threads, ended) {
		row, err := t.row()
		if err != nil {
			return nil, err
		}
		rows.Items = append(rows.Items, row)
	}
	return rows, nil
}

// takeIn has the new threads counted, as far as there is room, and says why not all of
// it is counted; empty: it is.
func (c *Counters) takeIn(p *process, tids []int, room *source.Room) (why string) {
	for _, tid := range tids {
		if slices.ContainsFunc(p.threads, func(t *thread) bool { return t.tid == tid }) {
			continue
		}
		switch {
		case len(p.threads) >= threadsPerProcess:
			return fmt.Sprintf("%d threads of a process are counted at most", threadsPerProcess)
		case c.descriptors >= maxDescriptors:
			return fmt.Sprintf("%d descriptors are taken for counters at most", maxDescriptors)
		case room.Left() == 0 && len(p.threads) > 0:
			return "the rest of the threads is not counted yet"
		}
		room.Take(openItems)
		t, err := c.ways.open(p.held.PID(), tid)
		switch {
		case errors.Is(err, procid.ErrGone), errors.Is(err, unix.ESRCH):
			continue // it has just ended
		case err != nil:
			return explain(err)
		}
		c.descriptors += t.descriptors()
		p.threads = append(p.threads, t)
	}
	return c.ways.noHardware
}

// ended says whether a thread has ended, also if another one has its id by now. The
// kernel does not tell by the descriptors: poll(2) finds all of them hung up that have
// no buffer.
func (t *thread) ended(pid int) bool {
	start, err := startOf(pid, t.tid)
	return err != nil || start != t.start
}

// letGo gives the descriptors of threads back.
func (c *Counters) letGo(threads []*thread) {
	for _, t := range threads {
		c.descriptors -= t.descriptors()
		t.close()
	}
}

// Keep implements [source.Keeper].
func (c *Counters) Keep(has func(handle uint64) bool) {
	for handle, p := range c.processes {
		if has(handle) {
			continue
		}
		c.letGo(p.threads)
		_ = p.held.Close() // was opened for reading: there is nothing to lose
		delete(c.processes, handle)
	}
}

// Close lets go of everything.
func (c *Counters) Close() error {
	c.Keep(func(uint64) bool { return false })
	return nil
}
