// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// state is who is known and who is looked for. All of it belongs to the
// goroutine of [Watcher.loop] but what status guards.
type state struct {
	log     *slog.Logger
	handler Handler
	digests *objfile.Digests
	hub     *hub
	own     program
	boot    string
	batch   batchLookup

	registrations []*registration // in the order of who comes first
	asked         []*attunev1.Registration
	// given are the processes that were told of, to whom.
	given map[key]*gift
	// sweepAt is how many of them, or of the hub's members, are too many: twice
	// those that were there when last it was looked which have ended.
	sweepAt int
	lost    uint64 // events, as logged
	ticks   int

	unchecked chan *candidate // wait for their checksum
	hashed    chan checksum

	status statusBoard
}

// gift says whom a process was offered to.
type gift struct {
	// to is the id of the registration that has taken it; "": none.
	to string
	// offered are the registrations by id that it was offered to or kept from.
	offered map[string]bool
}

func (g *gift) taken() bool { return g.to != "" }

// statusBoard is read by others.
type statusBoard struct {
	mu            sync.Mutex // guards what follows
	found         uint64
	missed        uint64
	registrations int
	unusable      map[string]string // registration to why
}

// miss counts a process that had ended before it could be looked at.
func (b *statusBoard) miss() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missed++
}

// program names this process' own executable.
type program struct {
	device, inode uint64
	directory     string
}

func ownProgram() (program, error) {
	path, err := os.Executable()
	if err != nil {
		return program{}, fmt.Errorf("own executable: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/exe", &st); err != nil {
		return program{}, fmt.Errorf("own executable: %w", err)
	}
	return program{uint64(st.Dev), st.Ino, filepath.Dir(path)}, nil
}

// is says whether a process runs this program or one of Attune's beside it.
func (p program) is(process *attunev1.Process) bool {
	identity := process.GetIdentity()
	if identity.GetExeDevice() == p.device && identity.GetExeInode() == p.inode {
		return true
	}
	directory, base := filepath.Split(process.GetExecutable())
	return filepath.Clean(directory) == p.directory && strings.HasPrefix(base, "attune")
}

func newState(options Options, hub *hub, own program, log *slog.Logger) *state {
	boot, _ := procid.BootID() // the same for all: only for other nodes
	return &state{
		log: log, handler: options.Handler, digests: options.Digests, hub: hub, own: own, boot: boot,
		batch: batchLookup{profiles: options.Batch, known: make(map[key]time.Time)},
		given: make(map[key]*gift), sweepAt: leastSweep, unchecked: make(chan *candidate, checksQueued), hashed: make(chan checksum),
	}
}

// register takes a new set of registrations and looks at who runs.
func (s *state) register(registrations []*attunev1.Registration) {
	before := make(map[string]*registration, len(s.registrations))
	for _, r := range s.registrations {
		before[r.GetId()] = r
	}
	there, same := make(map[string]bool, len(registrations)), make(map[string]bool, len(registrations))
	unusable := make(map[string]string)
	s.asked, s.registrations = registrations, nil
	ctx, cancel := context.WithTimeout(context.Background(), lookupPatience)
	defer cancel()
	directory := newDirectory(ctx)
	for _, r := range registrations {
		there[r.GetId()] = true
		compiled := before[r.GetId()]
		if same[r.GetId()] = compiled != nil && proto.Equal(compiled.Registration, r); !same[r.GetId()] {
			var err error
			if compiled, err = compile(r, directory.id); err != nil {
				unusable[r.GetId()] = err.Error()
				continue
			}
		}
		compiled.follow()
		s.registrations = append(s.registrations, compiled)
	}
	slices.SortFunc(s.registrations, precedes)
	for _, g := range s.given {
		if !there[g.to] {
			g.to = "" // its session has ended with the registration
		}
		// What is registered anew may mean what it did not mean before.
		maps.DeleteFunc(g.offered, func(id string, _ bool) bool { return !same[id] })
	}
	s.tellUnusable(unusable)
	s.tellKernel()
	s.scan()
	s.status.mu.Lock()
	s.status.registrations = len(s.registrations)
	s.status.mu.Unlock()
}

func (s *state) tellKernel() {
	var names []procevent.Name
	for _, r := range s.registrations {
		names = append(names, r.names()...)
	}
	if err := s.hub.want(names); err != nil {
		s.log.Warn("new processes of some registrations are not found", "error", err)
	}
}

// tellUnusable logs what is new among the registrations that mean nobody.
func (s *state) tellUnusable(unusable map[string]string) {
	b := &s.status
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, reason := range unusable {
		if b.unusable[id] != reason {
			s.log.Warn("registration means nobody on this node", "registration", id, "reason", reason)
		}
	}
	b.unusable = unusable
}

// sweep forgets processes that have ended, and returns those that there are, with
// when they started.
func (s *state) sweep() map[int]uint64 {
	mark := s.hub.mark() // who comes from now on may not be listed
	pids, err := procid.List()
	if err != nil {
		s.log.Warn("processes cannot be listed", "error", err)
		return nil
	}
	there := make(map[int]uint64, len(pids))
	for _, pid := range pids {
		if stat, err := procid.ReadStat(pid); err == nil && !stat.Zombie() {
			there[pid] = stat.StartTicks
		}
	}
	maps.DeleteFunc(s.given, func(k key, _ *gift) bool { return there[k.pid] != k.start })
	members := s.hub.prune(there, mark)
	s.sweepAt = max(leastSweep, 2*len(s.given), 2*members)
	return there
}

// scan looks at everybody.
func (s *state) scan() {
	there := s.sweep()
	if len(s.registrations) == 0 {
		return
	}
	// Parents before their children, which are then the same session's.
	for _, pid := range slices.SortedFunc(maps.Keys(there), func(a, b int) int {
		return cmp.Or(cmp.Compare(there[a], there[b]), cmp.Compare(a, b))
	}) {
		e := event{}
		e.PID, e.StartTicks = pid, there[pid]
		s.executed(e)
	}
}

const (
	// leastSweep is how many processes are remembered at least before those that
	// have ended are looked for.
	leastSweep = 4096
	// retryTicks is after how many ticks a registration is tried again that could
	// not be used: the node's directory of users may answer by then.
	retryTicks = 60
)

// tick looks whether events were lost.
func (s *state) tick(lost uint64) {
	if lost != s.lost {
		s.log.Warn("process events lost; short-lived processes may be missing", "lost", lost-s.lost)
		s.lost = lost
		s.scan()
		return
	}
	if s.ticks++; s.ticks%retryTicks == 0 && len(s.registrations) < len(s.asked) {
		s.register(s.asked)
	}
	if max(len(s.given), s.hub.size()) > s.sweepAt {
		s.sweep()
	}
}

// close lets go of what waits for a checksum.
func (s *state) close() {
	for {
		select {
		case c := <-s.unchecked:
			c.close()
		default:
			return
		}
	}
}
