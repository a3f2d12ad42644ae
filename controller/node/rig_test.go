// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/testing/leaktest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// steered is a session's controller that does what the test says.
type steered struct {
	config controller.Config
	// starting, if not nil, is what Start does.
	starting func(context.Context) error
	// following, if not nil, is called before a process is followed, and may refuse that.
	following func() error
	lost      chan struct{} // closed when it is gone
	stays     error         // why it cannot give everything back; nil: it can

	mu       sync.Mutex
	followed []procid.Identity
	ended    bool // all that it follows
	stopped  bool
	held     bool
}

func (c *steered) Start(ctx context.Context) error {
	if c.starting != nil {
		return c.starting(ctx)
	}
	return nil
}

func (c *steered) FollowProcess(process *procid.Process) error {
	if c.following != nil {
		if err := c.following(); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.followed, c.ended = append(c.followed, process.Identity()), false
	return nil
}

func (c *steered) Has(process procid.Identity) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.followed, process.SameProcess)
}

func (c *steered) Living() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return 0
	}
	return len(c.followed)
}

// end has all processes ended.
func (c *steered) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

func (c *steered) hasStopped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopped
}

func (c *steered) Stop(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	return c.stays
}

func (c *steered) Hold(context.Context, time.Duration) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = true
	return 1, nil
}

func (c *steered) Ended() <-chan struct{} { return c.lost }
func (*steered) Err() error               { return errors.New("signal: killed") }

func (*steered) Processes() []*attunev1.Process { return nil }

func (c *steered) Changes() []actuate.InForce {
	return []actuate.InForce{{ID: "c1", Knob: "knob", PID: c.followed[0].PID, Registration: c.config.Session.Registration}}
}

func (*steered) Environment(int) []string { return []string{"LD_PRELOAD=/lib/libattune-dm.so"} }

// KeepOnly keeps the changes whose id is "kept".
func (*steered) KeepOnly(_ context.Context, ids []string) (kept []string, err error) {
	for _, id := range ids {
		if id == "kept" {
			kept = append(kept, "1")
		} else {
			err = errors.New("not every change is kept")
		}
	}
	return kept, err
}

// bench is a node whose controllers and Analyzers are the test's.
type bench struct {
	*Node

	t *testing.T
	// refuse, if not nil, is why no controller can be made.
	refuse func() error
	// starting, if not nil, is what the start of a controller does.
	starting func(context.Context) error
	made     []*steered // controllers, in their order
	policy   *policy.Policy
	mode     string // of the registration
}

// inBubble runs a test with a node that has no discovery, in time that passes
// when nothing else happens.
func inBubble(t *testing.T, test func(*bench)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t}
		var err error
		b.Node, err = New(Config{
			ID: "n", Host: "host", RunDir: dir + "/run", StateDir: dir + "/state", Registry: new(registry.Node),
			Policy: func() *policy.Policy { return b.policy },
		})
		if err != nil {
			t.Fatal(err)
		}
		b.registrations.analyzers = func(context.Context) ([]*attunev1.AnalyzerRecord, error) {
			return nil, errors.New("the registry is away")
		}
		b.maker.create = func(config controller.Config) (controlled, error) {
			if b.refuse != nil {
				if err := b.refuse(); err != nil {
					return nil, err
				}
			}
			c := &steered{config: config, starting: b.starting, lost: make(chan struct{})}
			b.made = append(b.made, c)
			return c, nil
		}
		b.workers.open(t.Context())
		defer b.workers.end()
		test(b)
	})
}

// offer gives the node a process of a job, and lets it do what it does then.
func (b *bench) offer(job string, uid uint32, pid int) (*session, error) {
	b.t.Helper()
	defer synctest.Wait()
	return b.give(job, uid, pid)
}

// give gives the node a process of a job.
func (b *bench) give(job string, uid uint32, pid int) (*session, error) {
	held, err := procid.Open(pid)
	if err != nil {
		return nil, err
	}
	s, err := b.sessions.takeProcess(order{
		registration: &attunev1.Registration{Id: "r", Mode: b.mode}, job: &attunev1.Job{Kind: "slurm", Id: job},
		uid: uid, grant: grant{mode: "tune"},
	}, held)
	if err != nil {
		_ = held.Close()
	}
	return s, err
}

// mustOffer gives the node a process that it has to take, and returns its
// controller.
func (b *bench) mustOffer(job string, uid uint32, pid int) *steered {
	b.t.Helper()
	s, err := b.offer(job, uid, pid)
	if err != nil {
		b.t.Fatal(err)
	}
	if !isClosed(s.ready) {
		b.t.Fatal("the session has no controller")
	}
	return s.controller.(*steered)
}

// after lets time pass and says how many sessions there are then.
func (b *bench) after(d time.Duration) int {
	time.Sleep(d)
	synctest.Wait()
	return len(b.sessions.list())
}

// mustStart starts so many processes that live until the test ends, or the
// returned function ends one of them.
func mustStart(t *testing.T, many int) (pids []int, end func(n int)) {
	t.Helper()
	var ends []func()
	for range many {
		command := exec.Command("cat")
		stdin, err := command.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(fmt.Errorf("process of a job: %w", err))
		}
		ends = append(ends, sync.OnceFunc(func() {
			_ = stdin.Close()
			_ = command.Wait()
		}))
		pids = append(pids, command.Process.Pid)
	}
	t.Cleanup(func() {
		for _, end := range ends {
			end()
		}
	})
	return pids, func(n int) { ends[n]() }
}
