// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"errors"
	"fmt"
	"sync"

	"github.com/attune-hpc/attune/controller/source"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/proto/attune/series"
)

// process is what is kept of one process between samples.
type process struct {
	root string // /proc/PID
	pid  int

	mu      sync.Mutex // guards everything below; taken before Sampler.mu
	closed  bool
	stat    procFile
	threads map[int]*thread
	tids    []int // in the order in which they are read, one turn's list
	next    int   // of tids, to be read next
	// nextStatus is a turn of its own, for status files.
	nextStatus int
	ended      counters // of threads that have ended
	buffer     []byte   // borrowed for one Sample
	union      cpuMask
	anonymous  anonymous // as the status that was read last has it
	parts      []part
	of         source.Process // as the present round names it
	ran        uint64         // CPU time in clock ticks, as of this round
}

// part reads signals of a process that are no sums over its threads.
type part interface {
	// read adds those of this round, as far as they can be read. It may use the
	// buffer of the process.
	read(s *Sampler, p *process, to []series.Reading) ([]series.Reading, error)
	close(s *Sampler)
}

// counters are what the kernel does not sum over threads.
type counters struct{ run, wait, voluntary, involuntary uint64 }

func (c *counters) add(other counters) {
	c.run += other.run
	c.wait += other.wait
	c.voluntary += other.voluntary
	c.involuntary += other.involuntary
}

func newProcess(root string, pid int, parts []func(root string) part) *process {
	p := &process{
		root: root, pid: pid, stat: newProcFile(root + "/stat"), threads: make(map[int]*thread),
	}
	for _, make := range parts {
		p.parts = append(p.parts, make(root))
	}
	return p
}

// borrow takes a buffer until the returned function is called.
func (p *process) borrow(s *Sampler) (giveBack func()) {
	buffer := s.buffers.Get().(*[maxFileBytes]byte)
	p.buffer = buffer[:]
	return func() {
		p.buffer = nil
		s.buffers.Put(buffer)
	}
}

func (p *process) close(s *Sampler) {
	p.closed = true
	p.stat.close(&s.files)
	for _, part := range p.parts {
		part.close(s)
	}
	for _, t := range p.threads {
		t.close(s)
	}
}

func (p *process) readStat(s *Sampler) (procid.Stat, error) {
	data, err := p.stat.read(&s.files, p.buffer)
	if err != nil {
		return procid.Stat{}, err
	}
	stat, err := procid.ParseStat(data)
	if err != nil {
		return procid.Stat{}, fmt.Errorf("%s: %w", p.stat.path, err)
	}
	return stat, nil
}

// sample reads one round, with the details of so many threads at most.
func (p *process) sample(s *Sampler, detailed int) (readings []series.Reading, details *series.Rows[series.Thread], err error) {
	stat, err := p.readStat(s)
	if err != nil {
		return nil, nil, err
	}
	if stat.Zombie() {
		return nil, nil, fmt.Errorf("pid %d is a zombie: %w", p.pid, procid.ErrGone)
	}
	p.ran = stat.UserTicks + stat.SystemTicks
	if err := p.list(s, stat); err != nil {
		return nil, nil, err
	}
	items, err := p.readThreads(s, stat, detailed)
	if err != nil {
		return nil, nil, err
	}
	readings = p.total(stat, s.options.cpus).readings()
	for _, part := range p.parts {
		if readings, err = part.read(s, p, readings); err != nil {
			return nil, nil, err
		}
	}
	return readings, &series.Rows[series.Thread]{Total: stat.Threads, Items: items}, nil
}

// list brings the list of threads up to date when a turn begins. A process
// with one thread needs no look into its directory.
func (p *process) list(s *Sampler, stat procid.Stat) error {
	if p.next > 0 && p.next < len(p.tids) {
		return nil // within a turn
	}
	p.next = 0
	switch {
	case stat.Threads == 1 && !stat.Leaderless():
		p.tids = append(p.tids[:0], p.pid)
	default:
		var err error
		if p.tids, err = procid.AppendNumbers(p.tids[:0], p.root+"/task"); err != nil {
			return fmt.Errorf("threads: %w", err)
		}
	}
	p.keepListed(s)
	return nil
}

// readThreads reads the next threads of the turn, with the details of so many at
// most, which then are all of the round. The process's own stat file tells the
// first thread's state.
func (p *process) readThreads(s *Sampler, stat procid.Stat, detailed int) (details []series.Thread, err error) {
	count := s.options.threadsPerRound
	if detailed > 0 {
		count = min(count, detailed)
	}
	end := min(p.next+count, len(p.tids))
	for ; p.next < end; p.next++ {
		t := p.threads[p.tids[p.next]]
		if t == nil {
			continue // ended within the turn
		}
		err := t.read(s, p, stat, detailed > 0)
		if err == nil && detailed > 0 {
			details = append(details, t.detail())
		}
		if err := p.settle(s, t, err); err != nil {
			return nil, err
		}
	}
	if detailed > 0 {
		return details, nil // with their status
	}
	return nil, p.readStatuses(s)
}

// readStatuses reads the status of some threads in turn, the first one's
// always: most processes have no other.
func (p *process) readStatuses(s *Sampler) error {
	if first := p.threads[p.pid]; first != nil {
		if err := p.settle(s, first, first.readStatus(s, p)); err != nil {
			return err
		}
	}
	for range min(s.options.statusPerRound, len(p.tids)-1) {
		p.nextStatus = (p.nextStatus + 1) % len(p.tids)
		t := p.threads[p.tids[p.nextStatus]]
		if t == nil || t.tid == p.pid {
			continue
		}
		if err := p.settle(s, t, t.readStatus(s, p)); err != nil {
			return err
		}
	}
	return nil
}

// settle handles what reading a thread gave: a thread that has ended is no
// error.
func (p *process) settle(s *Sampler, t *thread, err error) error {
	if errors.Is(err, procid.ErrGone) {
		p.lose(s, t)
		return nil
	}
	return err
}

// total sums what is known of all threads. One that may use fewer CPUs than so many
// is bound.
func (p *process) total(stat procid.Stat, cpus int) totals {
	sum := p.ended
	t := totals{stat: stat}
	p.union = p.union[:0]
	for _, thread := range p.threads {
		sum.add(thread.counters)
		if thread.runnable {
			t.runnable++
		}
		if n := thread.cpus.count(); n > 0 && n < cpus {
			t.bound++
		}
		// Threads may be pinned apart: the process has the CPUs of all.
		for i, group := range thread.cpus {
			if i == len(p.union) {
				p.union = append(p.union, 0)
			}
			p.union[i] |= group
		}
	}
	t.cpus = p.union.count()
	t.run, t.wait, t.voluntary, t.involuntary = sum.run, sum.wait, sum.voluntary, sum.involuntary
	t.anonymous = p.anonymous
	return t
}
