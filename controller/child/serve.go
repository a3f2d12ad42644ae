// SPDX-License-Identifier: Apache-2.0

package child

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/internal/confine"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/procid"
)

// Serve is the process of a session: it does what attuned, which has started it, asks
// for, until attuned hangs up. It returns the exit code of the program.
func Serve(o ServeOptions, stderr io.Writer) int {
	// Signals to attuned's group are attuned's; the kernel ends this process with it.
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	procid.SetName("attuned-session")
	if err := confineSelf(); err != nil {
		_, _ = fmt.Fprintf(stderr, "attuned %s: %v\n", Word, err)
		return exitcode.Failure
	}
	conn, err := connOf(os.NewFile(socketFD, "socket"))
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "attuned %s is for attuned itself: %v\n", Word, err)
		return exitcode.Usage
	}
	c := newConversation(conn, mostToChild, 1)
	lines := &lines{conversation: c, debug: new(atomic.Bool)}
	s := &session{
		conversation: c, options: o, lines: lines, log: slog.New(lines),
		events: newSource(c), finder: &finder{conversation: c},
	}
	_ = c.listen(s.handle) // it ends when attuned hangs up
	return exitcode.OK
}

// confineSelf takes from this process what sessions do not need.
func confineSelf() error {
	if err := confine.Bound(limits()); err != nil {
		return err
	}
	return filter().Install()
}

// handle does what attuned asks for. What is answered has a goroutine: this process never
// waits to write before it reads on, since attuned, which is not to have goroutines for all
// that a process asks for, does.
func (s *session) handle(m message, file *os.File) error {
	switch m.Kind {
	case happened:
		e, err := decode[event](m)
		if err == nil {
			s.events.put(e.event())
		}
		return err
	case moved:
		s.finder.move()
		return nil
	}
	go func() { // ends with the process
		var body any
		err := fmt.Errorf("%w: %q is not for a session", errWire, m.Kind)
		if do := works[m.Kind]; do != nil {
			body, err = do(s, m, file)
		}
		if file != nil {
			_ = file.Close()
		}
		_ = s.answer(m, body, noFD, err) // attuned is gone otherwise
	}()
	return nil
}

// works are what does what attuned asks for.
var works = map[kind]work{
	ping:      decoded((*session).beat),
	begin:     decoded((*session).begin),
	restore:   decoded((*session).restore),
	follow:    begun((*session).follow),
	processes: begun((*session).listProcesses),
	changes:   begun((*session).listChanges),
	keep:      begun((*session).keep),
	stop:      begun((*session).stop),
	hold:      begun((*session).hold),
}

// work does what a message asks for, with the descriptor that came along, or nil, and
// returns the body of the answer.
type work func(s *session, m message, file *os.File) (any, error)

// decoded is work that is given the message's body.
func decoded[T any](do func(s *session, body T) (any, error)) work {
	return func(s *session, m message, _ *os.File) (any, error) {
		body, err := decode[T](m)
		if err != nil {
			return nil, err
		}
		return do(s, body)
	}
}

// begun is work that is given the controller, too, which has to be there.
func begun[T any](do func(s *session, c *controller.Controller, body T, file *os.File) (any, error)) work {
	return func(s *session, m message, file *os.File) (any, error) {
		return decoded(func(s *session, body T) (any, error) {
			c := s.running()
			if c == nil {
				return nil, errNotBegun
			}
			return do(s, c, body, file)
		})(s, m, file)
	}
}
