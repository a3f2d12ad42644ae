// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"cmp"
	"context"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/procid"
)

// births follows the command's processes by the events of all of the machine, which
// the kernel's process connector tells anybody.
type births struct {
	source track.Source

	mu    sync.Mutex // guards what follows
	known map[int]*life
	ended []life
	dead  []int // of these, those that may not have been waited for; beside other work only
	// leaderless are those of which the first thread has ended, and another one had not by then.
	leaderless map[int]*life
	total      uint64
	peak       uint64
	left       leftOut
}

// life is one process.
type life struct {
	pid, parent int
	start, end  uint64 // CLOCK_MONOTONIC, ns
	status      int32
	outlived    bool // its first thread was not the last one
	// What a look saw last: name is empty where there was none.
	name     string
	cpu      time.Duration
	resident uint64 // the most of all looks
}

// eventsTime is how long the kernel's last events may take to get here.
const eventsTime = 500 * time.Millisecond

// dyingTime is how long the threads of a process may take to end together.
const dyingTime = 50 * time.Millisecond

func newBirths(beside bool) (*births, error) {
	source, err := track.NewConnector()
	if err != nil {
		return nil, err
	}
	return &births{source: source, known: make(map[int]*life), leaderless: make(map[int]*life), left: leftOut{wanted: beside}}, nil
}

// begin says which process is the command. Its birth is among the events that wait.
func (b *births) begin(pid int) {
	b.known[pid] = &life{pid: pid, parent: unix.Getpid()}
	b.total, b.peak = 1, 1
}

// run takes events until ctx ends.
func (b *births) run(ctx context.Context) {
	// It fails when the socket does; whatever is lost then is lost for the account.
	_ = b.source.Run(ctx, b.handle)
}

func (b *births) handle(event track.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.known[event.PID]
	switch event.Kind {
	case track.Fork:
		switch {
		case known != nil && known.start == 0:
			known.start = event.Time // the command's own birth
		case b.known[event.Parent] != nil && event.PID != event.Parent:
			if parent := b.leaderless[event.Parent]; parent != nil {
				parent.outlived = true // who has a child goes on
			}
			b.endLeaderless()
			b.known[event.PID] = &life{pid: event.PID, parent: event.Parent, start: event.Time}
			b.total++
			b.peak = max(b.peak, uint64(len(b.known)))
		}
	case track.Exec:
		delete(b.leaderless, event.PID) // the thread that executed a program is the first one now
	case track.Exit:
		if known == nil {
			break
		}
		known.end, known.status = event.Time, event.Status
		if !event.Last && leaderless(event.PID) { // of the first thread, or other ones are about to end
			b.leaderless[event.PID] = known
			break
		}
		b.over(known)
	}
}

// over notes that a process has ended.
func (b *births) over(l *life) {
	b.ended = leaveOut(&b.left, append(b.ended, *l), longer, func(life) uint64 { return 0 })
	delete(b.known, l.pid)
	delete(b.leaderless, l.pid)
	if b.left.wanted && l.parent != unix.Getpid() { // who waits for the command says what it took
		b.dead = append(b.dead, l.pid)
	}
}

// endLeaderless notes the ends that nobody tells: of processes whose first thread had ended
// before the last one. Those of one program end together, but for what the machine takes.
func (b *births) endLeaderless() {
	now := clock.Monotonic()
	for pid, l := range b.leaderless {
		switch {
		case !leaderless(pid):
			if l.outlived { // it went on, and has ended since the look before
				l.end = uint64(now)
			}
			b.over(l)
		case now-time.Duration(l.end) > dyingTime:
			l.outlived = true
		}
	}
}

func leaderless(pid int) bool {
	stat, err := procid.ReadStat(pid)
	return err == nil && stat.Leaderless()
}

// unwaited are the processes that have ended and that nobody has waited for yet.
func (b *births) unwaited() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dead = slices.DeleteFunc(b.dead, func(pid int) bool {
		stat, err := procid.ReadStat(pid)
		return err != nil || !stat.Zombie()
	})
	return slices.Clone(b.dead)
}

// longer orders those first that lived longer.
func longer(a, b life) int { return cmp.Compare(b.end-b.start, a.end-a.start) }

// living are those that have not ended, as far as has been told.
func (b *births) living() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endLeaderless()
	return slices.Collect(maps.Keys(b.known))
}

// saw keeps what a look sees of a process.
func (b *births) saw(stat procid.Stat) {
	if live := procid.LiveThread(stat.PID, stat); live != stat.PID {
		thread, _ := procid.ReadThreadStat(stat.PID, live) // 0 pages if it has ended
		stat.ResidentPages = thread.ResidentPages
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.known[stat.PID]; l != nil {
		l.name, l.cpu = stat.Comm, ticks(stat.UserTicks+stat.SystemTicks)
		l.resident = max(l.resident, stat.ResidentPages*uint64(os.Getpagesize()))
	}
}

// counts returns how many there were, and the most at one time.
func (b *births) counts() (total, peak uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endLeaderless()
	return b.total, b.peak
}

// settle waits until the end of all has been told that are not alive any more.
func (b *births) settle() (total, peak uint64) {
	for end := time.Now().Add(eventsTime); time.Now().Before(end) && b.behind(); {
		time.Sleep(time.Millisecond)
	}
	return b.counts()
}

func (b *births) behind() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endLeaderless()
	for pid := range b.known {
		if unix.Kill(pid, 0) == unix.ESRCH {
			return true
		}
	}
	return false
}

// tree are the accounts of those that have ended.
func (b *births) tree(start time.Time) (list []account.Process) {
	b.mu.Lock()
	defer b.mu.Unlock()
	zero := time.Now().Add(-clock.Monotonic())
	for _, l := range b.ended {
		began := zero.Add(time.Duration(l.start))
		if l.start == 0 {
			began = start
		}
		p := processOf(l.pid, l.parent, l.name, began.Sub(start), zero.Add(time.Duration(l.end)).Sub(began))
		p.Exit = exitOf(unix.WaitStatus(l.status))
		if l.name != "" {
			p.CPUSeconds, p.Memory.Resident = new(l.cpu.Seconds()), new(l.resident)
		}
		list = append(list, p)
	}
	return list
}

func (b *births) lost() uint64 { return b.source.Lost() }

func (b *births) close() error { return b.source.Close() }
