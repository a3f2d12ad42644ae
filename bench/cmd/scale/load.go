// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/bench/internal/measure"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// interval is that of aggregates.
	interval = time.Second
	// dialling is how many controllers connect at the same time.
	dialling = 8
)

// load is all simulated controllers.
type load struct {
	analyzer     *analyzer
	registration string
	// sessions share the controllers, each of which has so many processes.
	sessions, processes int
	measured            measured
	ctx                 context.Context
	cancel              context.CancelFunc
	work                sync.WaitGroup
	ended               atomic.Int64 // streams that the Analyzer has ended

	mu    sync.Mutex
	all   []*controller
	trips int
}

// start makes it ready to grow. The caller calls close.
func (l *load) start() *load {
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

func (l *load) close() {
	l.cancel()
	l.work.Wait()
	for _, c := range l.all {
		c.close()
	}
}

func (l *load) size() int { return len(l.all) }

// streamEnded counts a stream that has ended, unless close ends all.
func (l *load) streamEnded() {
	if l.ctx.Err() == nil {
		l.ended.Add(1)
	}
}

// job is the execution that a controller has processes of.
func (l *load) job(number int) *attunev1.Job {
	return &attunev1.Job{Kind: "slurm", Id: strconv.Itoa(1 + number%l.sessions)}
}

// grow connects controllers until there are so many.
func (l *load) grow(ctx context.Context, to int) error {
	defer context.AfterFunc(ctx, l.cancel)() // whoever waits for the Analyzer waits no longer
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(dialling)
	for number := len(l.all); number < to; number++ {
		group.Go(func() error {
			c, err := l.connect(ctx, number)
			if err != nil {
				return fmt.Errorf("controller %d: %w", number, err)
			}
			l.mu.Lock()
			l.all = append(l.all, c)
			l.mu.Unlock()
			return nil
		})
	}
	return group.Wait()
}

// connect connects one controller, which comes again where the Analyzer says so.
func (l *load) connect(ctx context.Context, number int) (*controller, error) {
	for {
		c, err := newController(l, number)
		if err == nil {
			return c, nil
		}
		if status.Code(err) != codes.Unavailable {
			return nil, err
		}
		if err := measure.Pause(ctx, interval); err != nil {
			return nil, err
		}
	}
}

// roundTrip says how long the Analyzer takes to answer a controller's message
// with a command. The message is the hello of a controller that has a change in
// force which nobody knows: the session has it undone. That it takes a new
// management channel each time adds to what is measured.
func (l *load) roundTrip(ctx context.Context) (time.Duration, error) {
	l.trips++
	c := l.all[l.trips%len(l.all)]
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := attunev1.NewManagementServiceClient(c.manageConn).Manage(ctx)
	if err != nil {
		return 0, err
	}
	hello := c.hello()
	hello.ControllerId, hello.InForce = "trip-"+strconv.Itoa(l.trips), []string{"unknown"}
	began := time.Now()
	if err := stream.Send(&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Hello{Hello: hello}}); err != nil {
		return 0, err
	}
	for {
		r, err := stream.Recv()
		if err != nil {
			return 0, err
		}
		if r.GetUndo() != nil {
			return time.Since(began), stream.CloseSend()
		}
	}
}
