// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"context"
	"errors"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// callsOnce is a caller that finds a place for one call, which maps a page.
type callsOnce struct{ called bool }

func (c *callsOnce) Call(context.Context, access.Call) (uint64, string, error) {
	if c.called {
		return 0, "", shm.ErrNoSafePoint
	}
	c.called = true
	return scratchBytes, "a hook", nil
}

// TestPageThatStays: that a page could not be unmapped says nothing of what was done with it.
func TestPageThatStays(t *testing.T) {
	program := targets.BuildText(t, "ready.c", `#include <stdio.h>
int main(void) { puts("ready"); fflush(stdout); return getchar(); }`)
	r := &settingRequest{Request: &actuate.Request{Process: actuatetest.MustProcess(t, targets.Start(t, program).PID)}}
	for _, want := range []error{nil, errors.New("the value is refused")} {
		l := library{mailbox: &callsOnce{}}
		if err := l.pages(r)(t.Context(), func(scratch) error { return want }); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}
