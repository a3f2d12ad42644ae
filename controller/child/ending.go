// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Stop gives back what is still in force, and ends the process, by force when ctx ends.
// One that does not end even then is left behind some seconds later. What could not be
// given back stays in the journal.
func (c *Controller) Stop(ctx context.Context) error {
	return c.end(ctx, stop, func(patience time.Duration) any { return patience }, nil)
}

// Hold is Stop, but leaves the changes that are proven good in force for the controller
// that comes next, until a time since boot. It returns how many there are. Somebody has
// to see to it that they are undone then, see [Pool.Guard].
func (c *Controller) Hold(ctx context.Context, until time.Duration) (held int, err error) {
	err = c.end(ctx, hold, func(patience time.Duration) any { return holding{until, patience} }, &held)
	return held, err
}

// end has the process end the controller, and then itself.
func (c *Controller) end(ctx context.Context, k kind, body func(patience time.Duration) any, answer any) error {
	left := peerPatience
	if deadline, ok := ctx.Deadline(); ok {
		left = time.Until(deadline)
	}
	// The process is to say for itself that its time is up.
	ask, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	_, err := c.process.ask(ask, k, body(left*9/10), noFD, answer)
	if err == nil {
		c.cancel(errStopped)
	} else {
		c.cancel(fmt.Errorf("%s: %w", k, err))
	}
	<-c.ended
	if err != nil {
		return fmt.Errorf("%s controller: %w", k, errors.Join(err, c.err))
	}
	return nil
}

// Restore undoes, in a process that does nothing else, what controllers that live no
// more left behind in a directory of journals; held, also what they hold for the next.
func (p *Pool) Restore(ctx context.Context, dir string, held bool) (all []Restored, err error) {
	process, err := p.take(ctx)
	if err != nil {
		return nil, err
	}
	go func() { // ends with the process
		_ = process.listen(newEcho(p.log).handle)
	}()
	_, err = process.ask(ctx, restore, restoring{dir, held}, noFD, &all)
	if err != nil {
		err = fmt.Errorf("restore: %w", err)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
	defer cancel()
	return all, errors.Join(err, process.end(end))
}
