// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestThreadThatChangesIDs: a thread that waits for the others to change their user
// ids holds a lock by which threads are started. It is not borrowed meanwhile.
func TestThreadThatChangesIDs(t *testing.T) {
	b := newBench(t)
	target := targets.StartProgram(t, "setxid")
	changing := callers(t, target)[0]
	b.options.among = func(tid int) bool { return tid == changing }
	brief := b.options
	brief.patience = 500 * time.Millisecond
	entered := 0
	for range targets.Fewer(5) {
		if attachTo(t, target, brief) {
			entered++
		}
		target.Right(t)
	}
	if entered == 0 && !attachTo(t, target, b.options) {
		t.Error("the program is never entered between two changes")
	}
	target.Right(t)
	target.Finish(t)
}

// TestOthersChangeIDs: a thread that is borrowed while another one changes the user ids
// does so too. That one holds meanwhile a lock by which threads are started.
func TestOthersChangeIDs(t *testing.T) {
	b := newBench(t)
	target := targets.StartProgram(t, "setxid", "often")
	pausing := callers(t, target)[1]
	b.options.among = func(tid int) bool { return tid == pausing }
	for range targets.Fewer(10) {
		if !attachTo(t, target, b.options) {
			t.Error("the program is never entered by a thread that waits for signals")
		}
		target.Right(t)
	}
	target.Finish(t)
}
