// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/controller/link"
	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/confine"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/leaktest"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestMain is also the process of a session, one that a user has taken over, where the
// first argument says how it behaves, and a guard.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == Word {
		behave(os.Args[2])
		os.Exit(0)
	}
	if len(os.Args) > 3 && os.Args[1] == Word && os.Args[2] == GuardWord {
		os.Exit(ServeGuard(os.Args[3:], os.Stdin, os.Stdout, os.Stderr))
	}
	leaktest.Main(m)
}

// behave begins as it should, and then does what it likes.
func behave(how string) {
	if words := strings.Fields(how); words[0] == "attempt" {
		attempt(words[1:])
	}
	if how == "serve" {
		os.Exit(Serve(ServeOptions{}, os.Stderr))
	}
	conn, err := connOf(os.NewFile(socketFD, "socket"))
	if err != nil {
		panic(err)
	}
	c := newConversation(conn, mostToChild, 1)
	_ = c.listen(func(m message, _ *os.File) error {
		file, reads := strings.CutPrefix(how, "reads ")
		switch {
		case m.Kind == begin && how == "does not begin":
		case reads && (m.Kind == begin || m.Kind == restore):
			go func() { _, _ = os.ReadFile(file) }()
			if m.Kind == begin {
				return c.answer(m, nil, noFD, nil)
			}
		case m.Kind == begin:
			if err := c.answer(m, nil, noFD, nil); err != nil {
				return err
			}
			misbehave(c, how)
		case m.Call != 0:
			return c.answer(m, beating{Living: 1}, noFD, nil)
		}
		return nil
	})
}

func misbehave(c *conversation, how string) {
	switch how {
	case "panics":
		panic("garbage in shared memory")
	case "takes memory":
		if err := confine.Bound(limits()); err != nil {
			panic(err)
		}
		for all := []byte{1}; ; {
			all = append(all, all...)
		}
	case "takes processors":
		go func() {
			for n := 1; n != 0; n |= 1 {
			}
		}()
	case "no message":
		_, _ = c.conn.Write([]byte{lastPacket, '{'})
	case "unknown packet":
		_, _ = c.conn.Write([]byte{7, '{', '}'})
	case "empty packet":
		_, _ = c.conn.Write([]byte{lastPacket})
	case "endless message":
		for packet := make([]byte, packetSize); ; {
			packet[0] = morePackets
			if _, err := c.conn.Write(packet); err != nil {
				return
			}
		}
	case "unknown kind":
		_ = c.tell("root", "please")
	case "kind of attuned's":
		_ = c.tell(follow, procid.Identity{PID: 1})
	case "answer to nothing":
		_ = c.send(message{Kind: ping, Answer: true, Call: 1 << 40}, nil, noFD)
	case "descriptor":
		_ = c.send(message{Kind: logged}, line{}, 0)
	case "finds without end", "drains without end":
		k, _, _ := strings.Cut(how, "s ")
		for c.tell(kind(k), nil) == nil {
		}
	case "no pid":
		_ = c.tell(add, "1")
	case "no result":
		_ = c.tell(answered, []byte{0xff})
	}
}

// steady is a source of events that has none.
type steady struct {
	mu             sync.Mutex
	added, removed []int
	closed         bool
}

func (s *steady) Add(pid int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.added = append(s.added, pid)
	return nil
}

func (s *steady) Remove(pid int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removed = append(s.removed, pid)
	return nil
}

func (*steady) Run(ctx context.Context, _ func(track.Event)) error {
	<-ctx.Done()
	return nil
}

func (*steady) Lost() uint64 { return 0 }

func (s *steady) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// nowhere is an Analyzer that is not found.
type nowhere struct{}

func (nowhere) Find(ctx context.Context) (link.Peer, <-chan struct{}, error) {
	<-ctx.Done()
	return link.Peer{}, nil, ctx.Err()
}

// mustPool runs a pool of processes that behave in a way.
func mustPool(t *testing.T, how string) *Pool {
	t.Helper()
	p := NewPool(Options{Program: []string{"/proc/self/exe", Word, how}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return p
}

func mustNew(t *testing.T, p *Pool, source *steady) *Controller {
	t.Helper()
	allowed := func(string) string { return "" }
	c, err := New(controller.Config{
		Analyzer: nowhere{}, ID: "n.1", GatePath: t.TempDir() + "/gate", StateDir: t.TempDir(), Source: source,
		Session: controller.Session{
			Registration: "r", Job: &attunev1.Job{Id: "1"}, Mode: "tune",
			User: authn.Self(), Owner: authn.Self(),
		},
		Policy: func() *policy.Policy { return nil }, Denied: allowed, Untouched: allowed,
		Over: func([]string, error) {}, Asked: func(*attunev1.ManageResponse) {}, Answered: func(*attunev1.ActionResult) {},
	}, p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Whatever the process of a session does, it is ended, and that is why.
func TestHostileProcess(t *testing.T) {
	for how, why := range map[string]string{
		"panics": "garbage in shared memory", "takes memory": "out of memory|allocate",
		"takes processors": "of CPU time beyond",
		"no message":       "unexpected end", "unknown packet": "a packet of", "empty packet": "a packet of",
		"endless message": "a message of more than", "unknown kind": "is not for attuned",
		"kind of attuned's": "is not for attuned", "answer to nothing": "an answer to nothing",
		"finds without end": "before the last one was answered", "drains without end": "once more",
		"descriptor": "descriptors, which nobody asked for", "no pid": "cannot unmarshal", "no result": "protocol",
	} {
		t.Run(how, func(t *testing.T) {
			source := new(steady)
			c := mustNew(t, mustPool(t, how), source)
			if how == "takes processors" {
				c.budget.burst, c.budget.share = time.Millisecond, 0 // however little of a core there is
			}
			if err := c.Start(t.Context()); err != nil && !errors.Is(err, ErrLost) {
				t.Fatal(err)
			}
			select {
			case <-c.Ended():
			case <-time.After(patience.Limit):
				t.Fatal("it goes on")
			}
			if err := c.Err(); err == nil || !regexp.MustCompile(why).MatchString(err.Error()) {
				t.Errorf("ended because %v, want %q", err, why)
			}
			if err := unix.Kill(c.process.command.Process.Pid, 0); !errors.Is(err, unix.ESRCH) {
				t.Errorf("the process is there: %v", err)
			}
			if !source.closed {
				t.Error("its processes are not let go")
			}
			if c.Living() > 1 || c.Processes() != nil {
				t.Error("it has processes")
			}
			if err := c.FollowProcess(mustHold(t, os.Getpid())); err == nil {
				t.Error("it takes a process")
			}
		})
	}
}

func mustHold(t *testing.T, pid int) *procid.Process {
	t.Helper()
	held, err := procid.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { held.Close() })
	return held
}

// A session hears of processes that were handed to it, and of its user's.
func TestNamedProcesses(t *testing.T) {
	source := new(steady)
	c := mustNew(t, NewPool(Options{}), source)
	c.config.Session.User = authn.OfUser(4_000_000_000)
	r := &requests{served: c.served}
	self := os.Getpid()
	if err := r.watch(add, self); err == nil || len(source.added) != 0 {
		t.Errorf("another user's process: %v", err)
	}
	identity, err := procid.Of(self)
	if err != nil {
		t.Fatal(err)
	}
	c.roster.enter(self, identity.StartTicks+1)
	if err := r.watch(add, self); err == nil {
		t.Error("a process with the number of one that was handed over")
	}
	c.roster.enter(self, identity.StartTicks)
	if err := r.watch(add, self); err != nil || len(source.added) != 1 {
		t.Errorf("one that was handed over: %v", err)
	}
	c.roster.leave(self)
	c.config.Session.User = authn.Self()
	if err := r.watch(add, self); err != nil || len(source.added) != 2 {
		t.Errorf("one of the user's: %v", err)
	}
}

// A process is removed when it has ended, too, which may not have been told, and when
// another one has its number.
func TestRemovedProcess(t *testing.T) {
	source := new(steady)
	c := mustNew(t, NewPool(Options{}), source)
	r := &requests{served: c.served}
	identity, err := procid.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	before := identity
	before.StartTicks++
	c.roster.enter(before.PID, before.StartTicks)
	if err := r.watch(remove, before.PID); err != nil || !slices.Equal(source.removed, []int{before.PID}) {
		t.Errorf("removed %v, %v", source.removed, err)
	}
	if c.roster.has(before) {
		t.Error("the session has it")
	}
}

// What a process does goes through the process of its session, as without one.
func TestServe(t *testing.T) {
	c := mustNew(t, mustPool(t, "serve"), new(steady))
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("cat")
	stdin, err := command.StdinPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	held := mustHold(t, command.Process.Pid)
	if err := c.FollowProcess(held); err != nil {
		t.Fatal(err)
	}
	if !c.Has(held.Identity()) || c.Living() != 1 {
		t.Errorf("has it: %v, and %d processes", c.Has(held.Identity()), c.Living())
	}
	if all := c.Processes(); len(all) != 1 || int(all[0].GetIdentity().GetPid()) != held.PID() {
		t.Errorf("processes %v", all)
	}
	stdin.Close()
	_ = command.Wait() // ended as asked
	if err := c.FollowProcess(held); !errors.Is(err, procid.ErrGone) {
		t.Errorf("one that has ended: %v", err)
	}
	if kept, err := c.KeepOnly(t.Context(), []string{"c"}); err == nil {
		t.Errorf("kept %v without a journal", kept)
	}
	if err := c.Stop(t.Context()); err != nil || c.Err() != nil {
		t.Errorf("stop: %v, %v", err, c.Err())
	}
}
