// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

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
	program := targets.Build(t, "actuate/system/testdata/keeper.c")
	b := start(t)
	target := targets.Start(t, program, b.controller.Environment()...)
	process := b.withDMLib(t, target.PID)
	fds := strings.Fields(target.Ask(t, "fds")) // others it shares with this test
	number, err := strconv.ParseInt(fds[len(fds)-1], 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	fd := int32(number)
	size := func() string { return target.Ask(t, "pipe") }

	results := b.apply(t, pipeSize("c1", process.GetHandle(), fd, 1<<17))
	if len(results) != 1 || results[0].GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED ||
		results[0].GetOldValue().GetInteger() != 1<<16 || results[0].GetNewValue().GetInteger() != 1<<17 || size() != "131072" {
		t.Fatalf("%v; the program has %s", results, size())
	}
	results = b.apply(t, pipeSize("c2", process.GetHandle(), fd, 1<<18), pipeSize("c3", process.GetHandle(), fd, -1))
	if len(results) != 2 || !results[0].GetUntried() ||
		results[1].GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || size() != "131072" {
		t.Errorf("%v; the program has %s", results, size())
	}
	short := pipeSize("c4", process.GetHandle(), fd, 1<<18)
	short.LeaseNanos = int64(time.Millisecond)
	b.apply(t, short)
	patience.Until(t, "the old size after the lease", func() bool { return size() == "131072" })
	b.stop(t)
	if got := size(); got != strconv.Itoa(16*os.Getpagesize()) {
		t.Errorf("after the controller's end the program has %s", got)
	}
}
