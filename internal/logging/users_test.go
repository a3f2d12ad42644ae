// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestFloodOfAUser: what one user has the service say is bounded and counted, and the
// lines about others and about nobody are all there.
func TestFloodOfAUser(t *testing.T) {
	const alice, bob = uint32(4711), uint32(4712)
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := Service(&out, FormatText, slog.LevelInfo)
		ofSession := log.With("component", "node").With(UserKey, alice)
		for n := range 5000 {
			log.Info("alice's process", UserKey, alice)
			ofSession.Info("alice's session")
			if n%100 == 0 {
				log.Info("bob's process", UserKey, bob)
			}
			log.Info("the node's own")
			log.Info("root's process", UserKey, uint32(0))
		}
		time.Sleep(tellAfter + time.Second)
		synctest.Wait()
		lines := func(text string) int { return strings.Count(out.String(), text) }
		if n := lines("alice's"); n != linesAtOnce {
			t.Errorf("%d lines about alice, want %d", n, linesAtOnce)
		}
		for text, want := range map[string]int{
			"bob's process": 50, "the node's own": 5000, "root's process": 5000, "left out": 1,
			fmt.Sprintf("uid=%d lines=%d\n", alice, 10000-linesAtOnce): 1,
		} {
			if n := lines(text); n != want {
				t.Errorf("%d times %q, want %d", n, text, want)
			}
		}
		log.Info("alice's process", UserKey, alice)
		if n := lines("alice's"); n != linesAtOnce+1 {
			t.Errorf("%d lines about alice a minute later, want one more", n)
		}
	})
}
