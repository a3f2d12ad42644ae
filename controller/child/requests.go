// SPDX-License-Identifier: Apache-2.0

package child

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/controller/link"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// requests is what the process of a session asks of attuned. Its handle belongs to one
// goroutine.
type requests struct {
	*served

	echo    *echo
	relays  *relays
	drained context.Context // ends when the process wants no more events
	enough  context.CancelFunc
	drains  bool           // the process has said that it wants no more
	told    sync.WaitGroup // the events

	finding  context.CancelFunc // ends the search for the Analyzer
	searched <-chan struct{}    // closed when it has ended
	finished bool               // the process has said that the session is over

	mu        sync.Mutex // guards what follows; a leaf lock
	searching bool       // a search is not answered yet
	peer      *link.Peer // that was found last
}

func newRequests(s *served) *requests {
	r := &requests{served: s, echo: newEcho(s.log), finding: func() {}}
	none := make(chan struct{})
	close(none)
	r.searched = none
	r.relays = newRelays(s.config, s.relayed)
	r.drained, r.enough = context.WithCancel(s.ctx)
	r.told.Go(r.tellEvents)
	return r
}

// close ends what was made for the process, which is gone.
func (r *requests) close() {
	r.finding()
	r.enough()
	r.told.Wait()
	r.relays.close()
}

// tellEvents tells what happens to the session's processes.
func (r *requests) tellEvents() {
	err := r.config.Source.Run(r.drained, func(e track.Event) {
		r.roster.note(e)
		if r.ctx.Err() != nil {
			return // nobody hears it
		}
		if err := r.process.tell(happened, eventOf(e)); err != nil {
			r.cancel(err)
		}
	})
	if err != nil {
		r.log.Warn("process events", "error", err)
	}
}

// handle does what the process asks for. What takes time has a goroutine: one of each
// kind, and one more for a search while the answer to the one before is being sent.
func (r *requests) handle(m message, _ *os.File) error {
	switch m.Kind {
	case add, remove:
		pid, err := decode[int](m)
		if err != nil {
			return err
		}
		return r.process.answer(m, nil, noFD, r.watch(m.Kind, pid))
	case drain:
		return r.drain(m)
	case find:
		return r.find(m)
	case dial:
		return r.dial(m)
	case granted:
		program, err := decode[string](m)
		if err != nil {
			return err
		}
		return r.process.answer(m, granting{r.config.Denied(program), r.config.Untouched(program)}, noFD, nil)
	case rules:
		return r.process.answer(m, r.config.Policy().Text(), noFD, nil)
	case answered, over:
		return r.takeWord(m)
	case logged:
		return r.echo.write(m)
	default:
		return fmt.Errorf("%w: %q is not for attuned", errWire, strconv.Quote(clean(string(m.Kind))))
	}
}

// watch adds a process to those whose events are told, or removes it.
func (r *requests) watch(k kind, pid int) error {
	if k == remove {
		r.roster.leave(pid) // its end may have been lost
		return r.config.Source.Remove(pid)
	}
	if !r.roster.hasPID(pid) {
		if err := r.mayHave(pid); err != nil {
			return err
		}
	}
	if stat, err := procid.ReadStat(pid); err == nil {
		r.roster.enter(pid, stat.StartTicks)
	}
	err := r.config.Source.Add(pid)
	if errors.Is(err, procid.ErrGone) {
		r.roster.leave(pid)
	}
	return err
}

// mayHave says whether the session may hear of a process that attuned does not know to
// be its own: those of its user are no secret to them.
func (r *requests) mayHave(pid int) error {
	owner, err := procid.Owner(pid)
	if err != nil {
		return err
	}
	if user := r.config.Session.User; user.GetUid() != owner {
		return fmt.Errorf("process %d belongs to user %d, and the session to user %d", pid, owner, user.GetUid())
	}
	return nil
}

// drain tells no more events than have happened, and says when they are told.
func (r *requests) drain(m message) error {
	if r.drains {
		return fmt.Errorf("%w: %q once more", errWire, m.Kind)
	}
	r.drains = true
	r.enough()
	r.work.Go(func() {
		r.told.Wait()
		_ = r.process.answer(m, nil, noFD, nil) // it is gone otherwise
	})
	return nil
}

// search notes that a search begins; false if one is not answered yet.
func (r *requests) search() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.searching
	r.searching = true
	return !before
}

// found notes what a search has found, nil for nothing, before the process is told.
func (r *requests) found(peer *link.Peer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.searching = false
	r.peer = cmp.Or(peer, r.peer)
}

// find looks for the Analyzer, instead of the search before, which is answered.
func (r *requests) find(m message) error {
	if !r.search() {
		return fmt.Errorf("%w: %q before the last one was answered", errWire, m.Kind)
	}
	r.finding()
	ctx, cancel := context.WithCancel(r.ctx)
	r.finding = cancel
	before, done := r.searched, make(chan struct{})
	r.searched = done
	r.work.Go(func() {
		defer close(done)
		<-before // a finder belongs to one goroutine
		peer, moving, err := r.config.Analyzer.Find(ctx)
		if err == nil {
			r.found(&peer)
		} else {
			r.found(nil)
		}
		if r.process.answer(m, peer.Address, noFD, err) != nil || err != nil {
			return
		}
		select {
		case <-moving:
			_ = r.process.tell(moved, nil) // it is gone otherwise
		case <-ctx.Done():
		}
	})
	return nil
}

// dial gives the process a connection to the Analyzer.
func (r *requests) dial(m message) error {
	r.mu.Lock()
	peer := r.peer
	r.mu.Unlock()
	if peer == nil {
		return r.process.answer(m, nil, noFD, errors.New("no analyzer was found yet"))
	}
	end, err := r.relays.open(*peer)
	if err != nil {
		return r.process.answer(m, nil, noFD, err)
	}
	defer end.Close()
	return r.process.answer(m, nil, int(end.Fd()), nil)
}

// takeWord takes what the process tells.
func (r *requests) takeWord(m message) error {
	if m.Kind == over {
		e, err := decode[ending](m)
		if err == nil && !r.finished {
			r.finished = true
			r.config.Over(e.Keep, errors.New(clean(e.Reason)))
		}
		return err
	}
	text, err := decode[[]byte](m)
	if err != nil {
		return err
	}
	result := new(attunev1.ActionResult)
	if err := proto.Unmarshal(text, result); err != nil {
		return fmt.Errorf("%w: %w", errWire, err)
	}
	r.config.Answered(result)
	return nil
}
