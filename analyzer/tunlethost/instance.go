// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// instance is a tunlet that runs for one session in a process that others share. It
// is the way to it as well: calls carry its number, and what they took is charged to
// it. Safe for use by several goroutines.
type instance struct {
	shared *shared
	number uint64
	entry  string   // the number, as calls carry it
	costs  *account // nil: those of the whole process count
	cpu    atomic.Int64

	once   sync.Once
	gone   chan struct{} // closed when it has ended
	reason error         // why; set before gone is closed
}

var (
	_ life                     = (*instance)(nil)
	_ grpc.ClientConnInterface = (*instance)(nil)
)

// Invoke makes one call. A tunlet that panicked in it, or before, has ended.
func (i *instance) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	select {
	case <-i.gone:
		return status.Error(codes.Unavailable, "the tunlet has ended")
	default:
	}
	ctx = metadata.AppendToOutgoingContext(ctx, sdk.InstanceKey, i.entry)
	var trailer metadata.MD
	err := i.shared.run.conn.Invoke(ctx, method, args, reply, append(opts, grpc.Trailer(&trailer))...)
	i.charge(trailer)
	if reason := trailer.Get(sdk.EndedKey); len(reason) > 0 {
		i.Kill(reason[0])
	}
	return err
}

// NewStream fails: a tunlet's service has none.
func (i *instance) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "tunlets have no streams")
}

// charge counts what a call took.
func (i *instance) charge(trailer metadata.MD) {
	took := trailer.Get(sdk.CPUKey)
	if len(took) == 0 {
		return
	}
	nanos, err := strconv.ParseInt(took[0], 10, 64)
	if err != nil || nanos < 0 {
		return
	}
	i.cpu.Add(nanos)
	if i.costs != nil {
		i.costs.charge(time.Duration(nanos))
	}
	i.shared.pool.mu.Lock()
	i.shared.charged += time.Duration(nanos)
	i.shared.pool.mu.Unlock()
}

// Kill implements life.
func (i *instance) Kill(reason string) {
	if i.finish(errors.New(reason)) {
		i.shared.dismiss(i)
	}
}

// finish takes down why the instance has ended; false if that is known.
func (i *instance) finish(reason error) (first bool) {
	i.once.Do(func() {
		first, i.reason = true, reason
		close(i.gone)
	})
	return first
}

// done implements life.
func (i *instance) done() <-chan struct{} { return i.gone }

// ended implements life.
func (i *instance) ended() error {
	<-i.gone
	return i.reason
}

// measure implements life: the CPU time is that of its own calls. What memory of the
// process it has cannot be told; the peak is that of the whole process.
func (i *instance) measure() (usage, bool) {
	u := usage{peak: i.shared.run.proc.rss.Load(), cpu: time.Duration(i.cpu.Load())}
	select {
	case <-i.gone:
		return u, false
	default:
		return u, true
	}
}
