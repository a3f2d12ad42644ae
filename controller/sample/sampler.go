// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"errors"
	"os"
	"strconv"
	"sync"

	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Defaults of Options.
const (
	defaultMaxFiles        = 512
	defaultThreadsPerRound = 64
	defaultStatusPerRound  = 4
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
	// statusPerRound is of how many threads that are known already status is
	// read in one Sample; 0: defaultStatusPerRound.
	statusPerRound int
}

// Sampler samples processes.
type Sampler struct {
	options Options
	files   budget
	buffers sync.Pool // of *[maxFileBytes]byte, for one Sample at a time

	mu        sync.Mutex // guards processes
	processes map[int]*process
}

// New returns a Sampler. Its owner calls Close.
func New(options Options) *Sampler {
	if options.root == "" {
		options.root = "/proc"
	}
	if options.maxFiles == 0 {
		options.maxFiles = defaultMaxFiles
	}
	if options.threadsPerRound <= 0 {
		options.threadsPerRound = defaultThreadsPerRound
	}
	if options.statusPerRound <= 0 {
		options.statusPerRound = defaultStatusPerRound
	}
	s := &Sampler{options: options, processes: make(map[int]*process)}
	s.buffers.New = func() any { return new([maxFileBytes]byte) }
	s.files.left.Store(int64(max(options.maxFiles, 0)))
	return s
}

// Sample reads all signals of a process. Counters of one process never fall
// from one call to the next. [procid.ErrGone] if it has ended; what is kept of
// it is dropped then, so that a later process with this pid starts anew.
func (s *Sampler) Sample(pid int) ([]*attunev1.Reading, error) {
	readings, _, err := s.SampleThreads(pid, 0)
	return readings, err
}

// SampleThreads is Sample with the details of so many threads at most, nil if
// that is 0: those that are next in turn. The turn of a process is as long as it
// has threads, whether this is asked for or Sample.
func (s *Sampler) SampleThreads(pid, most int) ([]*attunev1.Reading, *attunev1.ThreadDetails, error) {
	p := s.process(pid)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, procid.ErrGone // forgotten since it was looked up
	}
	defer p.borrow(s)()
	totals, items, err := p.sample(s, most)
	if err != nil {
		if errors.Is(err, procid.ErrGone) {
			s.drop(p)
		}
		return nil, nil, err
	}
	if most <= 0 {
		return totals.readings(), nil, nil
	}
	return totals.readings(), &attunev1.ThreadDetails{Total: uint32(totals.stat.Threads), Items: items}, nil
}

func (s *Sampler) process(pid int) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.processes[pid]
	if !ok {
		p = newProcess(s.options.root+"/"+strconv.Itoa(pid), pid)
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

// totals are the signals of a process.
type totals struct {
	stat                   procid.Stat
	run, wait              uint64
	voluntary, involuntary uint64
	runnable, cpus         int
	anonymous              anonymous
	transfers              transfers
	hasIO                  bool
}

// readings makes the messages, in one allocation for all of them.
func (t totals) readings() []*attunev1.Reading {
	const nanosPerTick = 1e9 / procid.TicksPerSecond
	values := [...]struct {
		signal attunev1.Signal
		value  float64
		known  bool
	}{
		{attunev1.Signal_SIGNAL_CPU_USER, float64(t.stat.UserTicks) * nanosPerTick, true},
		{attunev1.Signal_SIGNAL_CPU_SYSTEM, float64(t.stat.SystemTicks) * nanosPerTick, true},
		{attunev1.Signal_SIGNAL_RUN_TIME, float64(t.run), true},
		{attunev1.Signal_SIGNAL_RUNQUEUE_WAIT, float64(t.wait), true},
		{attunev1.Signal_SIGNAL_MINOR_FAULTS, float64(t.stat.MinorFaults), true},
		{attunev1.Signal_SIGNAL_MAJOR_FAULTS, float64(t.stat.MajorFaults), true},
		{attunev1.Signal_SIGNAL_RESIDENT_BYTES, float64(t.stat.ResidentPages) * float64(os.Getpagesize()), true},
		{attunev1.Signal_SIGNAL_VOLUNTARY_SWITCHES, float64(t.voluntary), true},
		{attunev1.Signal_SIGNAL_INVOLUNTARY_SWITCHES, float64(t.involuntary), true},
		{attunev1.Signal_SIGNAL_THREADS, float64(t.stat.Threads), true},
		{attunev1.Signal_SIGNAL_RUNNABLE_THREADS, float64(t.runnable), true},
		{attunev1.Signal_SIGNAL_CPUS_ALLOWED, float64(t.cpus), true},
		{attunev1.Signal_SIGNAL_ANONYMOUS_BYTES, float64(t.anonymous.bytes), t.anonymous.known},
		{attunev1.Signal_SIGNAL_READ_CALLS, float64(t.transfers.readCalls), t.hasIO},
		{attunev1.Signal_SIGNAL_WRITE_CALLS, float64(t.transfers.writeCalls), t.hasIO},
		{attunev1.Signal_SIGNAL_READ_BYTES, float64(t.transfers.readBytes), t.hasIO},
		{attunev1.Signal_SIGNAL_WRITTEN_BYTES, float64(t.transfers.writtenBytes), t.hasIO},
	}
	memory := make([]attunev1.Reading, 0, len(values))
	for _, v := range values {
		if v.known {
			memory = append(memory, attunev1.Reading{Signal: v.signal, Value: v.value})
		}
	}
	readings := make([]*attunev1.Reading, len(memory))
	for i := range memory {
		readings[i] = &memory[i]
	}
	return readings
}
