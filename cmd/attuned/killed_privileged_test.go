// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/confined"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	"github.com/attune-hpc/attune/packaging/systemd"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// kills is how often the daemon is killed, at moments that are left to
	// chance within killWithin of its work on the program.
	kills      = 8
	killWithin = 700 * time.Millisecond

	knobBefore, knobAfter = "7", "8"
)

// workPoint counts the calls of a function of the worker; DMLib has to be there
// for that to be cheap.
func workPoint() *attunev1.PointWant {
	return &attunev1.PointWant{Index: 1, Point: &attunev1.MeasurePoint{
		Id: "work", Delivery: attunev1.Delivery_DELIVERY_AGGREGATE, Place: attunev1.Place_PLACE_ENTRY,
		Target: &attunev1.MeasurePoint_Function{Function: &attunev1.FunctionTarget{Symbols: []string{"work"}}},
	}}
}

// setKnob changes the worker's variable.
func setKnob(id string, process uint64) *attunev1.ManageResponse {
	integer := func(v int64) *attunev1.Value { return &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: v}} }
	return &attunev1.ManageResponse{RequestId: id, Request: &attunev1.ManageResponse_Apply{Apply: &attunev1.ApplyChanges{
		Changes: []*attunev1.Change{{Id: id, Knob: "knob", Process: process, Action: &attunev1.Action{
			Kind: &attunev1.Action_SetVariable{SetVariable: &attunev1.SetVariable{
				Symbol: "knob", Size: 4, Value: integer(8), RequiredOld: integer(7),
			}},
		}}},
	}}}
}

// The daemon is killed at any moment of its work on a program and started again:
// what it had changed is as it was, the program is found again and controlled
// once, and neither its results nor its exit status have suffered.
func TestKilledDaemonIsReplaced(t *testing.T) {
	t.Parallel()
	for _, uid := range []uint32{0, nobody} {
		t.Run(fmt.Sprintf("user %d", uid), func(t *testing.T) {
			t.Parallel()
			testKilled(t, uid)
		})
	}
}

// TestCrashIsNoWrongSetting: systemd starts an attuned again that Go's runtime has ended, as it does
// at a panic and when the watchdog sends SIGABRT.
func TestCrashIsNoWrongSetting(t *testing.T) {
	t.Parallel()
	s := mustSiteOnly(t)
	daemon := s.attuned()
	patience.Until(t, "attuned to serve", func() bool { code, _ := s.get("/readyz"); return code == http.StatusOK })
	if err := daemon.Process.Signal(unix.SIGABRT); err != nil {
		t.Fatal(err)
	}
	_ = daemon.Wait() // how it ended is what follows
	if ended := daemon.ProcessState; confined.StaysEnded(t, systemd.Attuned, ended) {
		t.Errorf("it stays ended after %v", ended)
	}
}

const nobody = 65534

func testKilled(t *testing.T, uid uint32) {
	s := mustSiteOnly(t)
	a := &scripted{points: []*attunev1.PointWant{workPoint()}}
	serveScript(t, a, s.path("a.sock"))
	program := s.worker("worker")
	command := exec.Command(program)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	target := targets.StartCommand(t, command)
	s.register("r1", program, "tune")
	for i := range kills {
		c := a.reset()
		daemon := s.attuned()
		process := patience.Receive(t, "the process", c.processes)
		if int(process.GetIdentity().GetPid()) != target.PID {
			t.Fatalf("process is %v", process)
		}
		if knob := target.Ask(t, "knob"); knob != knobBefore {
			t.Fatalf("after kill %d the knob is %s, want it as it was", i, knob)
		}
		c.requests <- setKnob(fmt.Sprintf("c%d", i), process.GetHandle())
		if i%3 == 0 { // else the moment is anywhere
			checkChanged(t, c, target)
		}
		time.Sleep(rand.N(killWithin))
		if err := daemon.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = daemon.Wait() // killed
	}
	c := a.reset()
	daemon := s.attuned()
	c.requests <- setKnob("last", patience.Receive(t, "the process", c.processes).GetHandle())
	checkChanged(t, c, target)
	checkCounts(t, c)
	checkControlledOnce(t, target.PID)
	s.stop(daemon)
	if knob := target.Ask(t, "knob"); knob != knobBefore {
		t.Errorf("after the end the knob is %s, want it as it was", knob)
	}
	checkUnharmed(t, target)
}

func checkChanged(t *testing.T, c *connection, target *targets.Target) {
	t.Helper()
	if result := patience.Receive(t, "the change", c.results); result.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatalf("change: %v", result)
	}
	if knob := target.Ask(t, "knob"); knob != knobAfter {
		t.Errorf("the knob is %s, want it changed", knob)
	}
}

// checkCounts waits for calls to be counted.
func checkCounts(t *testing.T, c *connection) {
	t.Helper()
	for patience.Receive(t, "calls of work", c.counts) == 0 {
	}
}

// checkControlledOnce waits until DMLib is there, which may come after the kernel
// serves a point already, and checks that it is there once, however often it was
// brought in.
func checkControlledOnce(t *testing.T, pid int) {
	t.Helper()
	libraries := 0
	patience.Until(t, "DMLib", func() bool {
		maps := files.Read(t, fmt.Sprintf("/proc/%d/maps", pid))
		for line := range bytes.Lines(maps) {
			if bytes.Contains(line, []byte("libattune-dm")) && bytes.Contains(line, []byte("r-xp")) {
				libraries++
			}
		}
		return libraries > 0
	})
	if libraries != 1 {
		t.Errorf("DMLib is mapped %d times", libraries)
	}
}

// checkUnharmed ends the worker, which tells of its results.
func checkUnharmed(t *testing.T, target *targets.Target) {
	t.Helper()
	target.CloseInput()
	target.Expect(t, "worked, 0 wrong")
	var status *exec.ExitError
	if err := target.Wait(); !errors.As(err, &status) || status.ExitCode() != 3 {
		t.Errorf("the program ended with %v, want status 3", err)
	}
}
