// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// state is who is known and who is looked for. All of it belongs to the
// goroutine of [Watcher.loop] but what status guards.
type state struct {
	log     *slog.Logger
	handler Handler
	theirs  func(job string) bool // Options.Elsewhere
	digests *objfile.Digests
	hub     *hub
	own     program
	boot    string
	batch   batchLookup

	registrations []*registration // in the order of who comes first
	// given are the processes that were told of, to whom.
	given map[key]*gift
	lost  uint64 // events, as logged

	unchecked chan *candidate // wait for their checksum
	hashed    chan checksum

	status statusBoard
}

// gift says what a process was told of.
type gift struct {
	taken bool
	// registrations by id that it was offered to or kept from, or that wait for
	// its checksum.
	registrations map[string]bool
}

// statusBoard is read by others.
type statusBoard struct {
	mu       sync.Mutex // guards what follows
	found    uint64
	unusable map[string]string // registration to why
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
		log: log, handler: options.Handler, theirs: options.Elsewhere, digests: options.Digests, hub: hub, own: own, boot: boot,
		batch: batchLookup{profiles: options.Batch, known: make(map[key]known)},
		given: make(map[key]*gift), unchecked: make(chan *candidate, checksQueued), hashed: make(chan checksum),
	}
}

// register takes a new set of registrations and looks at who runs.
func (s *state) register(registrations []*attunev1.Registration) {
	var usable []*registration
	unusable := make(map[string]string)
	for _, r := range registrations {
		compiled, err := compile(r, lookupUser)
		if err != nil {
			unusable[r.GetId()] = err.Error()
			continue
		}
		usable = append(usable, compiled)
	}
	slices.SortFunc(usable, precedes)
	s.tellUnusable(unusable)
	s.registrations = usable
	var names []bpf.Name
	for _, r := range usable {
		names = append(names, r.names()...)
	}
	if err := s.hub.want(names); err != nil {
		s.log.Warn("new processes of some registrations are not found", "error", err)
	}
	s.scan()
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

// scan looks at everybody.
func (s *state) scan() {
	pids, err := procid.List()
	if err != nil {
		s.log.Warn("processes cannot be listed", "error", err)
		return
	}
	there := make(map[key]bool, len(s.given))
	for _, pid := range pids {
		stat, err := procid.ReadStat(pid)
		if err != nil {
			continue
		}
		there[key{pid, stat.StartTicks}] = true
		if len(s.registrations) > 0 && !stat.Zombie() {
			e := event{}
			e.PID, e.StartTicks = pid, stat.StartTicks
			s.executed(e)
		}
	}
	maps.DeleteFunc(s.given, func(k key, _ *gift) bool { return !there[k] })
}

// sweepAt is how many processes are remembered before those that have ended
// are looked for.
const sweepAt = 4096

// tick looks whether events were lost.
func (s *state) tick(lost uint64) {
	if lost != s.lost {
		s.log.Warn("process events lost; short-lived processes may be missing", "lost", lost-s.lost)
		s.lost = lost
		s.scan()
		return
	}
	if len(s.given) > sweepAt {
		maps.DeleteFunc(s.given, func(k key, _ *gift) bool {
			stat, err := procid.ReadStat(k.pid)
			return err != nil || stat.StartTicks != k.start
		})
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
