// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// Revoking that fails is logged once and tried again, without a change, until it succeeds.
func TestRevokingIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := &conn{ctx: t.Context(), log: slog.New(slog.NewTextHandler(&log, nil))}
		m := newMirror(c, bucketOrders, nil)
		m.once.Do(func() {}) // there is no registry to be read
		m.complete = true
		ctx, cancel := context.WithCancel(t.Context())
		var attempts, views int
		revoke := func() error {
			if attempts++; attempts < 3 {
				return errors.New("not yet")
			}
			return nil
		}
		done := make(chan error)
		go func() { done <- c.follow(ctx, m, revoke, func(View) { views++ }) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		if attempts != 3 || views != 1 {
			t.Errorf("%d attempts and %d views, want 3 and 1", attempts, views)
		}
		if n := bytes.Count(log.Bytes(), []byte("\n")); n != 1 {
			t.Errorf("logged %d times, want once:\n%s", n, log.String())
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
