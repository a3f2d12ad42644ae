// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/queue"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Config is how a worker calls, and whom it tells. The functions are called in Run,
// but MaxNews in Push, and Hung there as well.
type Config struct {
	Timeout time.Duration                  // of a call
	MaxNews func() int                     // bounds the calls without measured data that wait
	React   func(*attunev1.Reaction)       // takes over what a call returned
	Hung    func(reason string)            // the tunlet does not answer, or not keep up
	Failed  func(method string, err error) // a call was answered with an error
}

// Worker makes the calls to one tunlet, one at a time, in order.
type Worker struct {
	backlog
	cfg    Config
	ctx    context.Context // of all calls; ends with Stop
	cancel context.CancelFunc
	absent map[string]bool // methods that the tunlet does not implement; Run's own
	wake   queue.Bell      // rung when there is a call
	urgent queue.Bell      // rung when that is urgent
	rest   atomic.Int64    // until when no call is made, nanoseconds since began
	began  time.Time
}

// New returns a worker whose calls Run makes. Its owner calls Stop.
func New(cfg Config) *Worker {
	w := &Worker{cfg: cfg, wake: queue.NewBell(), urgent: queue.NewBell(), began: time.Now()}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// Run makes calls until Stop. It is called once, in a goroutine of its own.
func (w *Worker) Run() {
	for {
		c, ok := w.next()
		if !ok || !w.rested() {
			return
		}
		w.make(c)
	}
}

// next waits for a call; false: there is none any more.
func (w *Worker) next() (Call, bool) {
	for {
		c, state := w.take()
		if state != empty {
			return c, state == taken
		}
		select {
		case <-w.wake:
		case <-w.ctx.Done():
			return Call{}, false
		}
	}
}

// Rest has the next call wait for so long from now: what the tunlet asked for has held
// others up.
// A shorter rest does not end a longer one. Called by one goroutine.
func (w *Worker) Rest(d time.Duration) {
	w.rest.Store(max(w.rest.Load(), int64(time.Since(w.began)+d)))
}

// rested waits for the end of a rest; false: there are no more calls.
func (w *Worker) rested() bool {
	left := time.Duration(w.rest.Load()) - time.Since(w.began)
	if left <= 0 {
		return true
	}
	select {
	case <-time.After(left):
	case <-w.urgent:
		w.rest.Store(0)
	case <-w.ctx.Done():
		return false
	}
	return true
}

// make makes one call. A tunlet that does not answer in time is hung; one that
// does not implement the method is not interested.
func (w *Worker) make(c Call) {
	if c.Done != nil {
		defer c.Done()
	}
	if w.absent[c.Method] {
		w.settle(true)
		return
	}
	ctx, cancel := context.WithTimeout(w.ctx, w.cfg.Timeout)
	defer cancel()
	reaction, err := c.Do(ctx)
	w.settle(err == nil || status.Code(err) == codes.Unimplemented)
	switch code := status.Code(err); {
	case err == nil:
		if reaction != nil {
			w.cfg.React(reaction)
		}
	case code == codes.Unimplemented:
		if w.absent == nil {
			w.absent = make(map[string]bool)
		}
		w.absent[c.Method] = true
	case code == codes.DeadlineExceeded && w.ctx.Err() == nil:
		w.cfg.Hung("no answer to " + c.Method + " within " + w.cfg.Timeout.String())
	case code != codes.Unavailable && code != codes.Canceled:
		w.cfg.Failed(c.Method, err)
	}
}

// Push queues a call. It never waits: data that does not fit is dropped and
// counted, and a queue full of news means that the tunlet is hung.
func (w *Worker) Push(c Call) {
	if !w.put(c, w.cfg.MaxNews()) {
		w.cfg.Hung("it does not keep up with what it is told")
		return
	}
	if c.Urgent {
		w.urgent.Ring()
	}
	w.wake.Ring()
}

// Stop ends the worker; a call under way is given up.
func (w *Worker) Stop() {
	w.close()
	w.cancel()
}
