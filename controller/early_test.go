// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/gate"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestSlowStart: a process that has not come to its first instruction for a second, as
// may be on a crowded node, is not taken for one that comes without DMLib.
func TestSlowStart(t *testing.T) {
	b := start(t)
	defer b.stop(t)
	runtime.LockOSThread() // the tracer is a thread
	defer runtime.UnlockOSThread()
	slow := exec.Command("sleep", "100")
	slow.Env = append(os.Environ(), b.controller.Environment()...)
	slow.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := slow.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = slow.Process.Kill(), slow.Wait() })
	told := func(m *attunev1.PublishRequest) (bool, bool) {
		p, way := aboutDMLib(m)
		return way.GetAvailable(), way != nil && int(p.GetIdentity().GetPid()) == slow.Process.Pid
	}
	if _, ok := eventWithin(b, time.Second, told); ok {
		t.Error("it was given up before it began")
	}
	if err := syscall.PtraceDetach(slow.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if !event(t, b, "process", told) {
		t.Error("it was given up when it came")
	}
}

// TestWhoPassesTheGate: new processes do once somebody is known who starts them,
// while no point has to be in place before main.
func TestWhoPassesTheGate(t *testing.T) {
	b := start(t)
	defer b.stop(t)
	c := b.controller
	connector, err := track.NewConnector()
	sourced := err == nil
	if sourced {
		err = connector.Close()
	}
	if sourced && err != nil {
		t.Fatal(err)
	}
	passes := func(what string, want bool) {
		t.Helper()
		want = want && sourced // else all have to come
		if _, err := os.Stat(c.config.GatePath + gate.EarlyHeaders); (err == nil) != want {
			t.Errorf("%s: %v, want %v", what, err == nil, want)
		}
	}
	passes("before anybody is known", false)
	target := targets.Start(t, targets.Build(t, "testdata/many.c", "-O1", "-pthread"), c.Environment()...)
	b.withDMLib(t, target.PID)
	passes("with a process", true)
	one := &attunev1.MeasurePoint{Id: "one", Processes: []uint64{1 << 40}, Target: &attunev1.MeasurePoint_Hook{Hook: "malloc"}}
	b.addPoint(t, 1, one)
	passes("with a point in one process", true)
	for index := range uint32(2) {
		b.addPoint(t, 2+index, &attunev1.MeasurePoint{Id: "all", Target: &attunev1.MeasurePoint_Hook{Hook: "malloc"}})
		passes("with a point in all", false)
	}
	for index := range uint32(2) {
		b.removePoint(t, 2+index)
		passes("with a point left", index == 1)
	}
}
