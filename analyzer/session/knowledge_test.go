// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
	"testing"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// A tunlet that helped the same program before does not sleep; one that did not
// does. What is known is asked for once for each executable.
func TestKnowledgeWakes(t *testing.T) {
	asked := make(chan string, 10)
	r := newRigWith(t, Config{Core: core.Config{Mode: core.ModeTune}, Known: func(application string) []core.Known {
		asked <- application
		return []core.Known{{Advice: "a", Tunlet: "good", Gain: 2, Kept: 1}, {Advice: "b", Tunlet: "bad", Gain: 2, Kept: 1, Undone: 1}}
	}})
	woken := make(chan string, 10)
	sleeps := func(name string) {
		r.session.TunletAsleep(sleepyInfo(name), func() { woken <- name })
		r.report()
	}
	sleeps("good")
	sleeps("bad")
	r.hello("ac1", "n1")
	for process := range uint64(2) {
		r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{
			ProcessStarted: &attunev1.Process{Handle: process + 1, Executable: "/bin/app", ExecutableSha256: "00ff"},
		}})
	}
	if name := <-woken; name != "good" {
		t.Errorf("%s is woken", name)
	}
	sleeps("good") // is not let sleep again
	if name := <-woken; name != "good" || len(woken) > 0 {
		t.Errorf("%s is woken, and %d further ones", name, len(woken))
	}
	said := 0 // each time, for a replay
	r.report()
	for _, e := range r.entries {
		if e.Tunlet == "good" && e.Text == "woken: it helped this program before" {
			said++
		}
	}
	if said != 2 {
		t.Errorf("the timeline says %d times that a tunlet is woken by what is known, want 2", said)
	}
	close(asked)
	var all []string
	for application := range asked {
		all = append(all, application)
	}
	if !slices.Equal(all, []string{"00ff"}) {
		t.Errorf("asked for %q, want each executable once", all)
	}
}
