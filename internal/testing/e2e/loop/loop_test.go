// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/attune-hpc/attune/analyzer"
	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/internal/testing/longgate"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// node is an Analyzer and a controller, joined by a socket.
type node struct {
	analyzer   *analyzer.Analyzer
	controller *controller.Controller
	line       *line // that the controller calls the Analyzer by
	served     chan error
	stopped    bool
}

// start starts both as `attune run` does.
func start(t *testing.T) *node {
	t.Helper()
	dir := t.TempDir()
	n := &node{served: make(chan error, 1)}
	var err error
	if n.analyzer, err = analyzer.New(analyzer.Config{
		Mode: "tune", Command: []string{programName}, JobID: "loop",
		TunletDirs: []string{tunletDir(t)}, DescriptionDir: filepath.Join(dir, "descriptions"),
	}); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	go func() { n.served <- n.analyzer.Serve(context.Background(), listener) }()
	t.Cleanup(func() {
		n.analyzer.Stop(context.Background())
		if err := patience.Receive(t, "end of the channels", n.served); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	n.line = extend(t, filepath.Join(dir, "c"), listener.Addr().String())
	n.controller, err = controller.New(controller.Config{
		AnalyzerAddress: "unix:" + filepath.Join(dir, "c"), GatePath: filepath.Join(dir, "gate", "g"),
		LibraryPath: longgate.Install(t, dir), GateTimeout: longgate.Limit,
		StateDir: filepath.Join(dir, "state"), JobID: fmt.Sprintf("loop-%d-%s", os.Getpid(), filepath.Base(dir)), Budget: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.controller.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.stopController(t) })
	if err := n.analyzer.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n
}

// stopController ends the controller, once.
func (n *node) stopController(t *testing.T) {
	t.Helper()
	if n.stopped {
		return
	}
	n.stopped = true
	ctx, cancel := context.WithTimeout(context.Background(), patience.Limit)
	defer cancel()
	if err := n.controller.Stop(ctx); err != nil {
		t.Errorf("stop the controller: %v", err)
	}
}

// program starts the program under the controller. It does nothing before it is
// told to, and nor does the tunlet.
func (n *node) program(t *testing.T) *targets.Target {
	t.Helper()
	p := targets.Start(t, buildProgram(t), n.controller.Environment()...)
	if err := n.controller.Follow(p.PID); err != nil {
		t.Fatal(err)
	}
	n.until(t, "a tunlet that sleeps beside a process", func(s report.Snapshot) bool {
		return s.Processes == 1 && len(s.Tunlets) == 1 && s.Tunlets[0].State == "asleep"
	})
	p.Say("begin")
	p.Expect(t, "begun")
	return p
}

// until waits for a state of the session, and shows the last one if it does not come.
func (n *node) until(t *testing.T, what string, holds func(report.Snapshot) bool) {
	t.Helper()
	var last report.Snapshot
	defer func() {
		if t.Failed() {
			t.Logf("%+v", last)
		}
	}()
	patience.Until(t, what, func() bool {
		last = n.analyzer.Snapshot()
		return holds(last)
	})
}

// proposal waits until the tunlet's proposal has got so far.
func (n *node) proposal(t *testing.T, states ...string) {
	t.Helper()
	n.until(t, fmt.Sprint("a proposal that is one of ", states), func(s report.Snapshot) bool {
		return len(s.Proposals) == 1 && slices.Contains(states, s.Proposals[0].State)
	})
}

// pace is what the program says that its variable holds.
func pace(t *testing.T, p *targets.Target) int {
	t.Helper()
	value, err := strconv.Atoi(p.Ask(t, variable))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// finish ends the session and returns the report.
func (n *node) finish(t *testing.T) *report.Report {
	t.Helper()
	code := int32(7)
	return n.analyzer.Finish(patience.Context(t), &attunev1.RecordedExit{Code: &code})
}

// TestLoop goes all the way: a signal wakes the tunlet, its measure point delivers,
// its change is made in the process, read back, judged and kept; at the end the
// program, which still runs, has its own value back, and the report tells it all.
func TestLoop(t *testing.T) {
	n := start(t)
	p := n.program(t)
	n.proposal(t, "kept")
	if got := pace(t, p); got != fast {
		t.Errorf("the program naps %d us, want %d", got, fast)
	}
	if err := n.analyzer.Settle(patience.Context(t)); err != nil {
		t.Errorf("settle: %v", err)
	}
	if got := pace(t, p); got != slow {
		t.Errorf("at the end of the session the program naps %d us, want its own %d", got, slow)
	}
	if err := p.End(t); err == nil || err.Error() != "exit status 7" {
		t.Errorf("the program ends with %v, want its own status 7", err)
	}
	n.stopController(t)
	r := n.finish(t)
	checkChange(t, r, p.PID)
	checkMeasured(t, r, p.PID)
}

// checkChange checks what the report says of a change that was kept.
func checkChange(t *testing.T, r *report.Report, pid int) {
	t.Helper()
	if len(r.Changes) != 1 {
		t.Fatalf("changes %+v, want one", r.Changes)
	}
	c := r.Changes[0]
	if c.Verdict != report.VerdictKept || c.Process != pid || c.Knob != knob || c.AppliedAt == nil || c.SafePoint == "" {
		t.Errorf("change %+v, want it applied to process %d at a safe point, and kept", c, pid)
	}
	if c.Old.String() != strconv.Itoa(slow) || c.New.String() != strconv.Itoa(fast) {
		t.Errorf("changed from %v to %v, want %d to %d", c.Old, c.New, slow, fast)
	}
	// How many more depends on how late the machine wakes the program up.
	if o := c.Objective; o == nil || o.Gain == nil || *o.Gain <= 1 {
		t.Errorf("judged by %+v, want more rounds", c.Objective)
	}
}

// checkMeasured checks what the report says of the rest.
func checkMeasured(t *testing.T, r *report.Report, pid int) {
	t.Helper()
	if len(r.Points) != 1 || r.Points[0].ID != point || r.Points[0].Mechanism != "hook" || r.Points[0].Hits == 0 {
		t.Errorf("points %+v, want %q served by a hook, with hits", r.Points, point)
	}
	if len(r.Processes) != 1 || r.Processes[0].PID != pid || !r.Processes[0].Instrumented || r.Processes[0].EndedSeconds == nil {
		t.Errorf("processes %+v, want %d, instrumented and ended", r.Processes, pid)
	}
	if len(r.Tunlets) != 1 || r.Tunlets[0].State != "stopped" || r.Tunlets[0].Restarts != 0 {
		t.Errorf("tunlets %+v, want one, stopped", r.Tunlets)
	}
	if r.Events.Lost != (report.Lost{}) || len(r.Remarks) != 0 || !r.Finished {
		t.Errorf("events %+v, remarks %+v: want none lost, and an orderly end", r.Events, r.Remarks)
	}
}
