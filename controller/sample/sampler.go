// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/source"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Defaults of Options.
const (
	defaultMaxFiles        = 512
	defaultThreadsPerRound = 64
	defaultStatusPerRound  = 4
	defaultPatience        = 50 * time.Millisecond
)

// Options of a Sampler.
type Options struct {
	// root is where proc is mounted; "": /proc.
	root string
	// maxFiles is how many descriptors are kept open at most, over all
	// processes; 0: defaultMaxFiles, less than 0: none.
	maxFiles int
	// threadsPerRound is of how many threads of a process schedstat and stat
	// are read in one Sample; 0: defaultThreadsPerRound.
	threadsPerRound int
	// cpus is how many CPUs a thread may use that is not bound; 0: as many as this
	// process.
	cpus int
	// statusPerRound is of how many threads that are known already status is
	// read in one Sample; 0: defaultStatusPerRound.
	statusPerRound int
	// patience is how long a round waits for memory and files of a program, which may
	// never answer; 0: defaultPatience.
	patience time.Duration
	// interpreterTicks is how much CPU time a program has taken when its interpreter is
	// looked for; 0: defaultInterpreterTicks.
	interpreterTicks uint64
}

// Sampler samples processes.
type Sampler struct {
	options  Options
	parts    []func(root string) part // make what reads a process, by its directory
	files    budget
	attempts attempts  // to read what belongs to programs
	buffers  sync.Pool // of *[maxFileBytes]byte, for one Sample at a time

	mu        sync.Mutex // guards processes
	processes map[int]*process
}

// New returns a Sampler. Its owner calls Close.
func New(options Options) *Sampler {
	options.root = cmp.Or(options.root, "/proc")
	options.maxFiles = cmp.Or(options.maxFiles, defaultMaxFiles)
	if options.threadsPerRound <= 0 {
		options.threadsPerRound = defaultThreadsPerRound
	}
	if options.statusPerRound <= 0 {
		options.statusPerRound = defaultStatusPerRound
	}
	options.patience = cmp.Or(options.patience, defaultPatience)
	options.interpreterTicks = cmp.Or(options.interpreterTicks, defaultInterpreterTicks)
	if options.cpus == 0 {
		options.cpus, _ = procid.CPUsAllowed(os.Getpid()) // 0 where that is unknown: no thread counts as bound
	}
	s := &Sampler{options: options, attempts: newAttempts(options.patience), processes: make(map[int]*process)}
	s.parts = []func(root string) part{newTransfers, newPressures(options.root).of, newInterpreter}
	s.buffers.New = func() any { return new([maxFileBytes]byte) }
	s.files.left.Store(int64(max(options.maxFiles, 0)))
	return s
}

// sample reads the signals of a process but for those of its memory, and the details
// of so many threads at most, nil if that is 0: those that are next in turn. The turn
// of a process is as long as it has threads, whether their details are asked for or not.
// Counters of one process never fall from one call to the next. [procid.ErrGone] if it
// has ended; what is kept of it is dropped then, so that a later process with this pid
// starts anew.
func (s *Sampler) sample(of source.Process, most int) (*attunev1.Table, *series.Rows[series.Thread], error) {
	p := s.process(of.Identity.PID)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, procid.ErrGone // forgotten since it was looked up
	}
	defer p.borrow(s)()
	p.of = of
	readings, threads, err := p.sample(s, most)
	if err != nil {
		if errors.Is(err, procid.ErrGone) {
			s.drop(p)
		}
		return nil, nil, err
	}
	if most <= 0 {
		return series.SignalTable(readings...), nil, nil
	}
	return series.SignalTable(readings...), threads, nil
}

func (s *Sampler) process(pid int) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.processes[pid]
	if !ok {
		p = newProcess(s.options.root+"/"+strconv.Itoa(pid), pid, s.parts)
		s.processes[pid] = p
	}
	return p
}

// Forget drops what is kept of a process that has ended. One that lives on,
// with another image after an exec, keeps its counters.
func (s *Sampler) Forget(pid int) {
	s.mu.Lock()
	p, ok := s.processes[pid]
	s.mu.Unlock()
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	defer p.borrow(s)()
	if stat, err := p.readStat(s); err == nil && !stat.Zombie() {
		return
	}
	s.drop(p)
}

// drop forgets a process. The caller holds its mutex; the order is always the
// process's mutex first.
func (s *Sampler) drop(p *process) {
	p.close(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.processes[p.pid] == p {
		delete(s.processes, p.pid)
	}
}

// Close drops everything. A later Sample starts anew.
func (s *Sampler) Close() error {
	s.mu.Lock()
	all := s.processes
	s.processes = make(map[int]*process)
	s.mu.Unlock()
	for _, p := range all {
		p.mu.Lock()
		p.close(s)
		p.mu.Unlock()
	}
	return nil
}

// totals are what stat tells of a process, and the sums over its threads.
type totals struct {
	stat                   procid.Stat
	run, wait              uint64
	voluntary, involuntary uint64
	runnable, cpus, bound  int
	anonymous              anonymous
}

// readings are those signals, with room for all others.
func (t totals) readings() []series.Reading {
	const nanosPerTick = uint64(procid.Tick)
	readings := append(make([]series.Reading, 0, series.SignalSize),
		series.Reading{ID: series.CPUUser, Value: t.stat.UserTicks * nanosPerTick},
		series.Reading{ID: series.CPUSystem, Value: t.stat.SystemTicks * nanosPerTick},
		series.Reading{ID: series.RunTime, Value: t.run},
		series.Reading{ID: series.RunqueueWait, Value: t.wait},
		series.Reading{ID: series.MinorFaults, Value: t.stat.MinorFaults},
		series.Reading{ID: series.MajorFaults, Value: t.stat.MajorFaults},
		series.Reading{ID: series.ResidentBytes, Value: t.stat.ResidentPages * uint64(os.Getpagesize())},
		series.Reading{ID: series.VoluntarySwitches, Value: t.voluntary},
		series.Reading{ID: series.InvoluntarySwitches, Value: t.involuntary},
		series.Reading{ID: series.Threads, Value: uint64(t.stat.Threads)},
		series.Reading{ID: series.RunnableThreads, Value: uint64(t.runnable)},
		series.Reading{ID: series.CPUsAllowed, Value: uint64(t.cpus)},
		series.Reading{ID: series.BoundThreads, Value: uint64(t.bound)},
	)
	if t.anonymous.known {
		readings = append(readings, series.Reading{ID: series.AnonymousBytes, Value: t.anonymous.bytes})
	}
	return readings
}

// Tables are the signals, and threads.
func (s *Sampler) Tables() []series.TableID {
	return []series.TableID{series.Signals().ID, series.TableThreads}
}

// Read reads the signals of a process, and its threads if they are wanted; see
// [source.Source].
func (s *Sampler) Read(p source.Process, wanted []series.TableID, room *source.Room, to *source.Measured) error {
	most := 0
	if slices.Contains(wanted, series.TableThreads) {
		most = min(room.Left(), s.options.threadsPerRound)
	}
	signals, threads, err := s.sample(p, most)
	if err != nil {
		return err
	}
	to.Signals, to.Details.Threads = signals, threads
	if threads != nil {
		room.Take(len(threads.Items))
	}
	return nil
}
