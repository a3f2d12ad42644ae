// SPDX-License-Identifier: Apache-2.0

package child

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/metrics"
	"github.com/attune-hpc/attune/internal/procid"
)

const (
	// beginPatience bounds the start of a controller.
	beginPatience = 30 * time.Second
	// pingInterval is how often a process has to say that it is there.
	pingInterval = time.Second
)

// Controller is the Application Controller of a session, in a process of its own.
type Controller struct {
	*served

	pool   *Pool
	budget *budget       // of the goroutine of beat
	spent  time.Duration // CPU time that was counted; of beat, then of serve
	living atomic.Int64
	asked  *requests     // set by Start
	ended  chan struct{} // see Ended
	err    error         // why; set before
}

// New prepares a session's controller in a process of a pool's. Only Start needs it.
func New(c controller.Config, p *Pool) (*Controller, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	n := &Controller{served: &served{config: c, log: c.Log, roster: newRoster(), relayed: &p.relayed}, pool: p, budget: newBudget(), ended: make(chan struct{})}
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	return n, nil
}

// Start runs the controller in a process until Stop. Where ctx ends before it runs, it
// never will, and nothing is lost.
func (c *Controller) Start(ctx context.Context) error {
	b, err := beginningOf(c.config)
	if err == nil {
		c.process, err = c.pool.take(ctx)
	}
	if err != nil {
		c.cancel(err)
		return errors.Join(err, c.config.Source.Close())
	}
	c.asked = newRequests(c.served)
	c.work.Go(c.beat)
	go c.serve() // ends with the process; see Ended
	begun, cancel := context.WithTimeout(ctx, beginPatience)
	defer cancel()
	_, err = c.process.ask(begun, begin, b, noFD, nil)
	switch {
	case err == nil:
		return nil
	case ctx.Err() == nil && (c.ctx.Err() != nil || begun.Err() != nil):
		c.cancel(errLate)
		<-c.ended
		return fmt.Errorf("%w: %w", ErrLost, c.err)
	default:
		c.cancel(errStopped)
		<-c.ended
		return err
	}
}

// ErrLost says that the process of a session is gone, or does not answer.
var ErrLost = errors.New("the process of the session is lost")

// errLate is why a process is ended that does not begin.
var errLate = fmt.Errorf("it has not begun for %v", beginPatience)

// serve serves what the process asks for until it is gone, and takes away what it had.
func (c *Controller) serve() {
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		c.cancel(c.process.listen(c.asked.handle))
	}()
	<-c.ctx.Done()
	end, cancel := context.WithTimeout(context.Background(), c.endPatience())
	defer cancel()
	c.err = c.process.end(end)
	if errors.Is(c.err, errLeftBehind) {
		c.log.Warn("process of the session is left behind", "pid", c.process.command.Process.Pid, "error", c.err)
		go func() { // ends with the process
			<-c.process.waited
			c.pool.late()
		}()
	}
	if cause := context.Cause(c.ctx); errors.Is(cause, errStopped) {
		c.err = nil
	} else if c.err == nil || !errors.Is(cause, io.EOF) && !errors.Is(cause, unix.ECONNRESET) && !errors.Is(cause, unix.EPIPE) {
		// How a process ended that has hung up says it all.
		c.err = errors.Join(cause, c.err)
	}
	<-listening
	c.asked.close()
	c.work.Wait()
	if used := c.process.used(); used > 0 {
		c.count(used)
	}
	if err := c.config.Source.Close(); err != nil {
		c.log.Debug("process events", "error", err)
	}
	close(c.ended)
}

// count counts the CPU time that the process has taken in its life so far.
func (c *Controller) count(used time.Duration) {
	c.pool.metrics.Add(metrics.NodeSessionsCPU, (used - c.spent).Seconds())
	c.spent = max(c.spent, used)
}

// errStopped is why a process ends that was asked to.
var errStopped = errors.New("stopped")

// endPatience is how long the process may take to end.
func (c *Controller) endPatience() time.Duration {
	if errors.Is(context.Cause(c.ctx), errStopped) {
		return endPatience
	}
	return 0
}

// Ended is closed when the process of a controller that has started is gone, or left
// behind since no signal ends it, after Stop or before, and all that it had.
func (c *Controller) Ended() <-chan struct{} { return c.ended }

// Err is why the process is gone, after Ended; nil after Stop.
func (c *Controller) Err() error { return c.err }

// beat has the process say that it is there, and ends one that does not, or that takes
// more CPU time than it may.
func (c *Controller) beat() {
	for beat.Pause(c.ctx, pingInterval) {
		if used, err := procid.CPUTime(c.process.command.Process.Pid); err == nil { // else it has ended
			c.count(used)
			if err := c.budget.spend(time.Now(), used); err != nil {
				c.cancel(err)
			}
		}
		ctx, cancel := context.WithTimeout(c.ctx, peerPatience)
		var b beating
		_, err := c.process.ask(ctx, ping, pinging{
			Lost: c.config.Source.Lost(), Debug: c.log.Enabled(ctx, slog.LevelDebug),
		}, noFD, &b)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			c.cancel(fmt.Errorf("it has not answered for %v", peerPatience))
		} else if err != nil {
			c.cancel(err)
		}
		cancel()
		c.living.Store(int64(b.Living))
	}
}

// FollowProcess makes a process, with all that it forks, part of the session.
func (c *Controller) FollowProcess(process *procid.Process) error {
	identity := process.Identity()
	c.roster.enter(identity.PID, identity.StartTicks)
	ctx, cancel := context.WithTimeout(c.ctx, peerPatience)
	defer cancel()
	var b beating
	err := process.WithFD(func(fd int) error {
		_, err := c.process.ask(ctx, follow, identity, fd, &b)
		return err
	})
	if err != nil {
		c.roster.leave(identity.PID)
		return err
	}
	c.living.Store(int64(b.Living))
	return nil
}

// Has says whether a process is the session's, whatever it executes.
func (c *Controller) Has(process procid.Identity) bool { return c.roster.has(process) }

// Living counts the processes under control, as the process has said last.
func (c *Controller) Living() int { return int(c.living.Load()) }

// Environment is what a program that a process executes needs to come to the gate.
func (c *Controller) Environment(pid int) []string { return c.config.Environment(pid) }

// KeepOnly makes some of the changes the user's own, who undoes them by hand, and
// returns the ids to undo them by.
func (c *Controller) KeepOnly(ctx context.Context, changes []string) ([]string, error) {
	var kept keeping
	_, err := c.process.ask(ctx, keep, keeping{IDs: changes}, noFD, &kept)
	if err == nil && kept.Error != "" {
		err = errors.New(clean(kept.Error))
	}
	return kept.IDs, err
}
