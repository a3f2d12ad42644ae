// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// instanceBytes is how much more memory a shared process may take for each tunlet
	// that runs in it.
	instanceBytes = 1 << 20
	// crowd is for how many of them it may take another core's share of CPU time that
	// is none of theirs: what the calls take beside the tunlets' own code.
	crowd = 32
	// endPatience is how long a process may take to say that it has ended an instance.
	endPatience = 2 * time.Second
)

// errShared marks the end of a shared process, and a start of it that failed. Whose
// fault that is cannot be told: it is held against none of the tunlets.
var errShared = errors.New("the process that the tunlets share")

// shared is a process that serves the tunlets of a package.
type shared struct {
	pool    *Pool
	key     packageKey
	started chan struct{} // closed when run or err is set
	run     *running
	service attunev1.TunletPackageServiceClient
	err     error

	// What follows is guarded by the pool's mutex.
	instances map[*instance]bool
	guests    int       // instances, and those who are about to begin one
	emptyFrom time.Time // since when there are none; zero: there are, or were none yet
	retired   bool      // nothing is begun in it any more
	over      bool      // it has ended
	charged   time.Duration
}

// live starts the process and looks after it until it ends.
func (s *shared) live() {
	log := s.pool.opts.Log.With("tunlets", s.key.program)
	l := launcher{
		program: s.key.program, arguments: []string{sdk.ServeArgument}, limits: s.pool.opts.Limits, grow: true, tempDir: s.pool.opts.TempDir,
		timeout: s.pool.opts.startTimeout, said: newLimitedLog(log), host: s.pool.host, costs: s.pool.costs,
	}
	s.run, s.err = l.run(s.pool.ctx, func(_ context.Context, conn grpc.ClientConnInterface) error {
		s.service = attunev1.NewTunletPackageServiceClient(conn)
		return nil
	})
	if s.err != nil {
		s.err = fmt.Errorf("%w: %w", errShared, s.err)
		log.Warn("process of tunlets could not be started; those that need it try again", "error", s.err)
		s.end()
		close(s.started)
		return
	}
	close(s.started)
	s.watch()
	reason := s.run.ended()
	left := s.end()
	if len(left) > 0 {
		log.Warn("process of tunlets ended; those that ran in it are started again", "tunlets", len(left), "reason", reason)
	}
	for _, i := range left {
		i.finish(fmt.Errorf("%w: %w", errShared, reason))
	}
}

// watch waits for the end of the process, and causes it when it takes too much, when
// nobody needs it, or when the pool is closed.
func (s *shared) watch() {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	w := s.pool.opts.Limits.watcher(s.run)
	for {
		select {
		case <-s.pool.ctx.Done():
			s.run.Kill("stopped with the Analyzer")
			return
		case <-s.run.done():
			return
		case now := <-look.C:
			if reason := s.look(now, &w); reason != "" {
				s.run.Kill(reason)
				return
			}
		}
	}
}

// look returns why the process is to be ended; empty: it is not. CPU time that no
// tunlet's calls were charged with is that of one that does not return, or of what
// tunlets do beside their calls.
func (s *shared) look(now time.Time, w *watcher) string {
	u, ok := s.run.measure()
	if !ok {
		return ""
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.guests == 0 && (s.retired || now.Sub(s.emptyFrom) >= s.pool.opts.idle) {
		s.retireLocked()
		return "no tunlet runs in it"
	}
	u.cpu -= s.charged
	w.limits = s.limitsLocked()
	if err := w.look(now, u); err != nil {
		return err.Error()
	}
	return ""
}

// limitsLocked are those of the process with the tunlets that run in it.
func (s *shared) limitsLocked() Limits {
	l := s.pool.opts.Limits
	l.MemoryBytes += uint64(len(s.instances)) * instanceBytes
	l.CPU *= float64(1 + len(s.instances)/crowd)
	return l
}

// begin begins a tunlet, and charges to costs what it takes. The caller has entered.
func (s *shared) begin(ctx context.Context, name string, costs *account) (*instance, error) {
	begun, err := s.service.BeginTunlet(ctx, &attunev1.BeginTunletRequest{Tunlet: name})
	if err != nil {
		s.leave(nil)
		return nil, fmt.Errorf("begin it in the process of its package: %w", s.blame(ctx, err))
	}
	i := &instance{
		shared: s, number: begun.GetInstance(), entry: strconv.FormatUint(begun.GetInstance(), 10), gone: make(chan struct{}),
	}
	if costs != s.pool.costs { // which have all of the process
		i.costs = costs
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.over {
		return nil, fmt.Errorf("%w has ended", errShared)
	}
	s.instances[i] = true
	_ = s.run.proc.raise(s.limitsLocked()) // else the kernel ends it sooner
	return i, nil
}

// blame returns the error of a call as an errShared if the call failed because the
// process was about to end, and not for the end of ctx.
func (s *shared) blame(ctx context.Context, err error) error {
	if code := status.Code(err); ctx.Err() != nil || code != codes.Unavailable && code != codes.Canceled {
		return err
	}
	select {
	case <-s.run.done():
		return fmt.Errorf("%w has ended: %w", errShared, err)
	case <-ctx.Done():
		return err
	case <-time.After(endPatience):
		return err
	}
}

// leave takes back an enter, with the instance that came of it, if any.
func (s *shared) leave(i *instance) {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	delete(s.instances, i)
	if s.guests--; s.guests == 0 {
		s.emptyFrom = time.Now()
	}
}

// dismiss has the process end an instance. One whose call does not return, or that
// the process does not answer about, leaves something behind there that may take CPU
// time: further tunlets are begun in another process.
func (s *shared) dismiss(i *instance) {
	defer s.leave(i)
	s.pool.inBackground(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, endPatience)
		defer cancel()
		ended, err := s.service.EndTunlet(ctx, &attunev1.EndTunletRequest{Instance: i.number})
		if err != nil || ended.GetRunning() {
			s.retire()
		}
	})
}

// retire has nothing begun in the process any more.
func (s *shared) retire() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.retireLocked()
}

func (s *shared) retireLocked() {
	s.retired = true
	if s.pool.current[s.key] == s {
		delete(s.pool.current, s.key)
	}
}

// end takes down that the process has ended, and returns what ran in it.
func (s *shared) end() (left []*instance) {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.retireLocked()
	s.pool.shared--
	s.over = true
	for i := range s.instances {
		left = append(left, i)
	}
	return left
}
