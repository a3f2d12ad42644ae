// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/actuate/kinds"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// mustKeep starts a program with a pipe of its own under the controller, and says which
// descriptor the pipe has; others it shares with this test.
func (b *bench) mustKeep(t *testing.T) (target *targets.Target, handle uint64, pipe int32) {
	t.Helper()
	target = targets.Start(t, targets.Build(t, "actuate/system/testdata/keeper.c"), b.controller.Environment()...)
	process := b.withDMLib(t, target.PID)
	fds := strings.Fields(target.Ask(t, "fds"))
	number, err := strconv.ParseInt(fds[len(fds)-1], 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return target, process.GetHandle(), int32(number)
}

func pipeSize(id string, process uint64, fd int32, bytes int64) *attunev1.Change {
	return &attunev1.Change{
		Id: id, Knob: "pipe.size", Process: process, LeaseNanos: int64(time.Minute),
		Action: &attunev1.Action{Kind: &attunev1.Action_System{System: &attunev1.SystemSetting{
			Name: "pipe.size", On: &fd, Value: &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: bytes}},
		}}},
	}
}

// What the operating system keeps is changed over the management channel like
// the rest: all or nothing, undone at the end of the lease, and at the end.
func TestSystemSettings(t *testing.T) {
	b := start(t)
	target, handle, fd := b.mustKeep(t)
	size := func() string { return target.Ask(t, "pipe") }

	results := b.apply(t, pipeSize("c1", handle, fd, 1<<17))
	if len(results) != 1 || results[0].GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED ||
		results[0].GetOldValue().GetInteger() != 1<<16 || results[0].GetNewValue().GetInteger() != 1<<17 || size() != "131072" {
		t.Fatalf("%v; the program has %s", results, size())
	}
	results = b.apply(t, pipeSize("c2", handle, fd, 1<<18), pipeSize("c3", handle, fd, -1))
	if len(results) != 2 || !results[0].GetUntried() ||
		results[1].GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || size() != "131072" {
		t.Errorf("%v; the program has %s", results, size())
	}
	short := pipeSize("c4", handle, fd, 1<<18)
	short.LeaseNanos = int64(time.Millisecond)
	b.apply(t, short)
	patience.Until(t, "the old size after the lease", func() bool { return size() == "131072" })
	b.stop(t)
	if got := size(); got != strconv.Itoa(16*os.Getpagesize()) {
		t.Errorf("after the controller's end the program has %s", got)
	}
}

// What cannot be undone when the controller stops is said, and its journal has it: whoever
// comes next gives it back.
func TestStopSaysWhatStays(t *testing.T) {
	b := start(t)
	target, handle, fd := b.mustKeep(t)
	before := target.Ask(t, "pipe")
	results := b.apply(t, pipeSize("c1", handle, fd, 1<<17))
	if len(results) != 1 || results[0].GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatalf("%v", results)
	}
	for range 2 { // so much is more than the pipe held before
		if target.Ask(t, "fill") != "1" {
			t.Fatal("the pipe is not filled")
		}
	}
	if err := b.controller.Stop(patience.Context(t)); err == nil || !strings.Contains(err.Error(), "change c1 of pipe.size in process "+strconv.Itoa(target.PID)+" stays in force") {
		t.Errorf("stop: %v", err)
	}
	if target.Ask(t, "drain") != "1" {
		t.Fatal("the pipe is not drained")
	}
	if restored, err := kinds.All(kinds.Options{}).Restore(b.state); err != nil || len(restored) != 1 || restored[0].Err != nil {
		t.Errorf("restored %v, %v", restored, err)
	}
	if after := target.Ask(t, "pipe"); after != before {
		t.Errorf("the pipe has %s bytes, want %s", after, before)
	}
}
