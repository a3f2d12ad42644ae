// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errSilent says that nothing came from the Analyzer for too long: it renews
// the leases of changes every second.
var errSilent = errors.New("nothing heard from the analyzer")

// errMoved says that another Analyzer has the session.
var errMoved = errors.New("the session has moved to another analyzer")

// Run carries messages until Finish was called and everything is delivered, or
// ctx is done, or the Analyzer is gone; with a Finder the last is no end, but
// its word that there is no such session is, with [ErrOver]. The
// management channel, whose end means to the Analyzer that the controller has
// gone, ends after the event channel.
func (c *Client) Run(ctx context.Context, handle Handler) error {
	defer c.Finish()
	if c.options.Finder != nil {
		return c.runFound(ctx, handle)
	}
	return c.serve(ctx, c.current.Load(), handle)
}

// runFound connects again and again, until Finish or the end of ctx.
func (c *Client) runFound(ctx context.Context, handle Handler) error {
	looking, stop := context.WithCancel(ctx) // ends with Finish, too
	defer stop()
	go func() { // ends with looking
		select {
		case <-c.closed:
			stop()
		case <-looking.Done():
		}
	}()
	pause := c.options.pause.withDefaults()
	said := ""
	refused := 0 // in a row, with the word that there is no such session
	for failed := 0; ; failed++ {
		began := time.Now()
		peer, moved, heard, err := c.attempt(ctx, looking, handle)
		if c.finished() || looking.Err() != nil {
			c.log.Debug("left the analyzer", "error", err)
			return ctx.Err()
		}
		if refused = refusals(refused, err); heard && refused > 0 || refused >= maxRefusals {
			return fmt.Errorf("%w: %w", ErrOver, err)
		}
		if time.Since(began) > pause.longest { // it was connected, or waited for an Analyzer to be known
			failed, said = 0, ""
		}
		if text := err.Error(); text != said { // health is told on change
			c.log.Warn("not connected to the analyzer; trying again", "analyzer", peer.Address, "reason", err)
			said = text
		}
		select {
		case <-looking.Done():
		case <-moved: // never, where there is none
			failed = 0
		case <-time.After(max(pause.after(failed), time.Duration(refused)*pause.refusal)):
		}
	}
}

// maxRefusals is how often an Analyzer that never knew of the session has to say
// so to be believed: it may be starting, or just ending an execution before.
const maxRefusals = 4

// refusals counts them.
func refusals(before int, err error) int {
	if code := status.Code(err); code == codes.NotFound || code == codes.Aborted {
		return before + 1
	}
	return 0
}

// attempt finds the Analyzer and stays with it for as long as that lasts, and
// says whether anything came from it. The error is nil after Finish only.
func (c *Client) attempt(
	ctx, looking context.Context, handle Handler,
) (peer Peer, moved <-chan struct{}, heard bool, err error) {
	if peer, moved, err = c.options.Finder.Find(looking); err != nil {
		return peer, nil, false, err
	}
	heard, err = c.visit(ctx, peer, moved, handle)
	return peer, moved, heard, err
}

// visit connects to an Analyzer and serves it until the connection breaks.
func (c *Client) visit(ctx context.Context, peer Peer, moved <-chan struct{}, handle Handler) (heard bool, err error) {
	l, err := dial(peer)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() { // ends with ctx
		defer close(watched)
		cancel(watch(ctx, l, moved, c.options.pause.withDefaults().silence))
	}()
	err = c.serve(ctx, l, handle)
	if c.current.Swap(nil) != nil {
		c.options.Lost()
	}
	if cause := context.Cause(ctx); errors.Is(cause, errMoved) || errors.Is(cause, errSilent) {
		err = cause
	}
	cancel(nil)
	<-watched
	return l.spoken.Load(), err
}

// watch returns why a connection is to be given up.
func watch(ctx context.Context, l *connection, moved <-chan struct{}, silence time.Duration) error {
	timer := time.NewTimer(silence)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.broken:
			return nil
		case <-moved:
			return errMoved
		case <-timer.C:
			return errSilent
		case <-l.heard:
			timer.Reset(silence)
		}
	}
}
