// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// A controller that cannot be made is no process that was lost.
func TestRefusedBeginning(t *testing.T) {
	c := mustNew(t, mustPool(t, "serve"), new(steady))
	c.config.StateDir = os.DevNull + "/none"
	if err := c.Start(t.Context()); err == nil || errors.Is(err, ErrLost) {
		t.Errorf("start: %v", err)
	}
}

// calledOff is a source that ends a context when the process of the session is there.
type calledOff struct {
	steady
	callOff context.CancelFunc
}

func (s *calledOff) Run(ctx context.Context, handle func(track.Event)) error {
	s.callOff()
	return s.steady.Run(ctx, handle)
}

// A beginning that is called off is no process that was lost.
func TestCalledOffBeginning(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := mustNew(t, mustPool(t, "does not begin"), nil)
	source := &calledOff{callOff: cancel}
	c.config.Source = source
	if err := c.Start(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, ErrLost) {
		t.Errorf("start: %v", err)
	}
	patience.Closed(t, "the end of the process", c.Ended())
	if err := c.Err(); err != nil || !source.closed {
		t.Errorf("ended because %v; source closed: %v", err, source.closed)
	}
}
