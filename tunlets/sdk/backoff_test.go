// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"testing"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

func TestBackoff(t *testing.T) {
	var b sdk.Backoff
	for _, want := range []time.Duration{2, 4, 8, 16, 32, 64, 64} {
		if got := b.Next(); got != want*time.Second {
			t.Errorf("pause of %v, want %d s", got, want)
		}
	}
	b.Reset()
	if got := b.Next(); got != 2*time.Second {
		t.Errorf("pause of %v after a reset, want 2 s", got)
	}
}
