// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/patience"
)

// A start that failed while nobody waited says nothing about the present: it is tried again.
// One that fails still is told.
func TestStartThatFailedEarlier(t *testing.T) {
	for _, tt := range []struct {
		name, program string
		want          error
	}{
		{"it would not fail now", "/proc/self/exe", nil},
		{"it fails still", t.TempDir() + "/none", os.ErrNotExist},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := NewPool(Options{Program: []string{tt.program, Word, "serve"}})
			ctx, cancel := context.WithCancel(patience.Context(t))
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				p.offer(ctx, started{err: errors.New("no memory, hours ago")})
				p.Run(ctx)
			}()
			defer func() { cancel(); <-ended }()
			process, err := p.take(ctx)
			if !errors.Is(err, tt.want) {
				t.Errorf("start: %v, want %v", err, tt.want)
			}
			if err == nil {
				endIdle(process)
			}
		})
	}
}
