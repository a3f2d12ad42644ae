// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A node asks for its orders as long as no Analyzer answers, which may be for days. What
// this costs it is asserted here as the number of requests.
func TestWhatFailsIsTriedLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &conn{ctx: t.Context()}
		c.link.init()
		c.link.connected()
		var soon, requests int
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.do(ctx, func(context.Context) error {
			requests++
			if time.Since(began) <= time.Second {
				soon++
			}
			return ErrNoAnalyzer
		})
		if !errors.Is(err, ErrNoAnalyzer) {
			t.Errorf("in the end: %v, want %v", err, ErrNoAnalyzer)
		}
		if soon < 3 {
			t.Errorf("%d attempts in the first second, want at least 3", soon)
		}
		if requests > 40 {
			t.Errorf("%d requests in a minute without an Analyzer, want at most 40", requests)
		}
	})
}
