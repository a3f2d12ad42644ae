// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/hidden"
	"github.com/attune-hpc/attune/controller/actuate/kinds"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/readers"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ServeOptions say where a session's process finds things. All may be left out.
type ServeOptions struct {
	// Digests remembers checksums of programs.
	Digests *objfile.Digests
	// Hidden finds variables without symbol.
	Hidden *hidden.Prober
	// Readers read what belongs to processes; nil: this process does.
	Readers *readers.Pool
	// KeptDir and KeptHost say where the journal is of changes that stay after their
	// session; empty: none does.
	KeptDir, KeptHost string
}

// session is what runs in its process.
type session struct {
	*conversation

	options ServeOptions
	lines   *lines
	log     *slog.Logger
	events  *source
	finder  *finder

	mu         sync.Mutex // guards what follows
	controller *controller.Controller
}

// running returns the controller, nil before it has begun.
func (s *session) running() *controller.Controller {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.controller
}

// beat says how things are. It takes the lock of the controller's processes, so
// that a controller that hangs is known.
func (s *session) beat(p pinging) (any, error) {
	s.events.lost.Store(p.Lost)
	s.lines.debug.Store(p.Debug)
	if c := s.running(); c != nil {
		return beating{Living: c.Living()}, nil
	}
	return beating{}, nil
}

// errNotBegun refuses what needs a controller.
var errNotBegun = errors.New("the session has not begun")

// begin makes and starts the controller.
func (s *session) begin(b beginning) (any, error) {
	config, err := s.config(b)
	if err != nil {
		return nil, err
	}
	c, err := controller.New(config)
	if err == nil {
		err = c.Start(context.Background())
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.controller = c
	return nil, nil
}

// config is what the controller goes by.
func (s *session) config(b beginning) (controller.Config, error) {
	rules := &ruler{conversation: s.conversation}
	c := controller.Config{
		ID: b.ID, GatePath: b.GatePath, LibraryPath: b.LibraryPath, StateDir: b.StateDir,
		LateLibrary: b.LateLibrary, UseBPF: b.UseBPF, TakesOver: b.TakesOver, LookInterval: b.LookInterval, Budget: b.Budget,
		Session: controller.Session{
			Registration: b.Registration, Mode: b.Mode,
			Job: new(attunev1.Job), User: new(attunev1.Principal), Owner: new(attunev1.Principal),
		},
		Analyzer: s.finder, Source: s.events, Log: s.log, Digests: s.options.Digests, Readers: s.options.Readers, Hidden: s.options.Hidden,
		Policy: rules.policy, Denied: rules.denied, Untouched: rules.untouched, Over: s.over, Answered: s.answered,
	}
	for _, part := range []struct {
		text []byte
		to   proto.Message
	}{{b.Job, c.Session.Job}, {b.User, c.Session.User}, {b.Owner, c.Session.Owner}} {
		if err := proto.Unmarshal(part.text, part.to); err != nil {
			return c, err
		}
	}
	return c, nil
}

// follow makes a process part of the session.
func (*session) follow(c *controller.Controller, identity procid.Identity, file *os.File) (any, error) {
	if file == nil {
		return nil, fmt.Errorf("%w: a process without a descriptor", errWire)
	}
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("descriptor of a process: %w", err)
	}
	process, err := procid.Adopt(fd, identity.PID, identity.StartTicks)
	if err != nil {
		return nil, err
	}
	err = errors.Join(c.FollowProcess(process), process.Close())
	return beating{Living: c.Living()}, err
}

// keptPatience is how long somebody else may have the journal of kept changes.
const keptPatience = 2 * time.Second

// keep makes changes the user's own.
func (s *session) keep(c *controller.Controller, wanted keeping, _ *os.File) (any, error) {
	if s.options.KeptDir == "" {
		return nil, errors.New("the node has no journal for them")
	}
	ctx, cancel := context.WithTimeout(context.Background(), keptPatience)
	defer cancel()
	journal, err := kinds.All(kinds.Options{}).OpenKept(ctx, s.options.KeptDir, s.options.KeptHost)
	if err != nil {
		return nil, err
	}
	var kept keeping
	kept.IDs, err = c.KeepOnly(context.Background(), journal, wanted.IDs)
	if err = errors.Join(err, journal.Close()); err != nil {
		kept.Error = err.Error()
	}
	return kept, nil
}

// stop gives everything back.
func (*session) stop(c *controller.Controller, patience time.Duration, _ *os.File) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return nil, c.Stop(ctx)
}

// hold gives back what is not proven good.
func (*session) hold(c *controller.Controller, h holding, _ *os.File) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), h.Patience)
	defer cancel()
	return c.Hold(ctx, h.Until)
}

// restore undoes what dead controllers left behind in a directory.
func (*session) restore(what restoring) (any, error) {
	known := kinds.All(kinds.Options{})
	undo := known.Restore
	if what.Held {
		undo = known.RestoreHeld
	}
	done, err := undo(what.Dir)
	var all []Restored
	for _, r := range done {
		one := Restored{Change: r.Change, Knob: r.Knob, PID: r.PID}
		if r.Err != nil {
			one.Error = r.Err.Error()
		}
		all = append(all, one)
	}
	if err != nil { // of the journals; an answer has either an error or what became of the changes
		all = append(all, Restored{Error: err.Error()})
	}
	return all, nil
}

// pageBytes is about how much of a list goes in one message.
const pageBytes = 256 << 10

// listProcesses tells of the processes under control.
func (*session) listProcesses(c *controller.Controller, from page, _ *os.File) (any, error) {
	return pageOf(from.From, c.Processes(), func(p *attunev1.Process) ([]byte, error) { return encoded(p) })
}

// listChanges tells of the changes in force.
func (*session) listChanges(c *controller.Controller, from page, _ *os.File) (any, error) {
	return pageOf(from.From, c.Changes(), func(one actuate.InForce) ([]byte, error) { return json.Marshal(one) })
}

// pageOf is the page of a list that begins somewhere.
func pageOf[T any](from int, all []T, encode func(T) ([]byte, error)) (page, error) {
	told := page{From: from, Of: len(all)}
	for size, next := 0, max(from, 0); next < len(all) && size < pageBytes; next++ {
		text, err := encode(all[next])
		if err != nil {
			return told, err
		}
		told.Items = append(told.Items, text)
		size += len(text)
	}
	return told, nil
}

// over tells that the Analyzer wants the session ended.
func (c *conversation) over(keep []string, reason error) {
	_ = c.tell(over, ending{keep, reason.Error()}) // attuned is gone otherwise
}

// answered tells what became of a change.
func (c *conversation) answered(result *attunev1.ActionResult) {
	if text, err := encoded(result); err == nil { // what cannot be encoded reaches no Analyzer either
		_ = c.tell(answered, text) // attuned is gone otherwise
	}
}
