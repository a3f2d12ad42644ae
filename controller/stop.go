// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/actuate"
)

// deliveryPatience is how long the end waits for an Analyzer that may be gone.
const deliveryPatience = time.Second

// Keep makes the changes in force the user's own, who undoes them by hand. Stop
// undoes what is left. It returns the ids to undo them by.
func (c *Controller) Keep(kept *actuate.Kept) ([]string, error) { return c.changes.Keep(kept) }

// KeepOnly is Keep for some of the changes; the others are undone.
func (c *Controller) KeepOnly(ctx context.Context, kept *actuate.Kept, changes []string) ([]string, error) {
	return c.changes.KeepOnly(ctx, kept, changes)
}

// Stop undoes what is still in force, takes all points out, delivers what is
// queued, and ends everything. It returns when ctx ends at the latest; what it
// could not undo stays in the journal, and the error says so. Processes that have
// ended, of which the tracker may not have told yet, are finished before their
// points would be taken out.
func (c *Controller) Stop(ctx context.Context) error {
	return c.end(ctx, func() error { return c.changes.UndoAll(ctx) }, c.client.Finish)
}

// Hold is Stop for a controller that another one of this node follows: the changes that
// are proven good stay in force for it until a time since boot, see [actuate.Hold],
// and the Analyzer, which is left without a word, awaits it. It returns the number of
// changes that stay.
func (c *Controller) Hold(ctx context.Context, until time.Duration) (held int, err error) {
	err = c.end(ctx, func() (err error) {
		held, err = c.changes.Hold(ctx, until)
		return err
	}, c.abandon)
	return held, err
}

// abandon ends the connection as a controller does that is killed.
func (c *Controller) abandon() {
	if c.giveUp != nil { // it was started
		c.giveUp()
		c.serve.Wait()
	}
	c.client.Finish()
}

// end ends everything: what is changed, and the client in the end.
func (c *Controller) end(ctx context.Context, release func() error, leave func()) error {
	// Whoever waits for room in the queues, perhaps with a lock that is wanted
	// below, waits no longer than that.
	unblock := context.AfterFunc(ctx, c.client.Finish)
	defer unblock()
	err := release()
	c.tellRest(ctx)
	c.placer.Withdraw(ctx)
	c.admission.Leave(ctx)
	c.placer.Close()
	for _, t := range c.members.List() {
		if memory := t.Memory(); memory != nil {
			memory.Detach()
		}
	}
	c.sendStatus()
	leave()
	c.cancel()
	if !ends(ctx, &c.tracks.work) || !c.work.end(ctx) {
		return errors.Join(err, fmt.Errorf("stop controller: %w", ctx.Err()))
	}
	c.lastWords(ctx)
	return errors.Join(err, c.dispose())
}

// tellRest ends the tracker when it has told of all that has happened, and
// empties the outbox, unless the Analyzer takes nothing.
func (c *Controller) tellRest(ctx context.Context) {
	if c.tracks.stop == nil {
		return // never started
	}
	ctx, cancel := context.WithTimeout(ctx, deliveryPatience)
	defer cancel()
	c.tracks.stop()
	var rest sync.WaitGroup
	rest.Go(func() { // ends with the client's Finish at the latest
		c.tracks.work.Wait()
		c.outbox.Flush()
	})
	ends(ctx, &rest)
}

// lastWords waits until the Analyzer has everything, and gives up on one that
// is not there.
func (c *Controller) lastWords(ctx context.Context) {
	if c.giveUp == nil {
		return // never started
	}
	ctx, cancel := context.WithTimeout(ctx, deliveryPatience)
	defer cancel()
	if !ends(ctx, &c.serve) {
		c.log.Warn("the analyzer does not take the last messages")
	}
	c.giveUp()
	c.serve.Wait()
}
