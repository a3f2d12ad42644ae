// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package controller

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf/features"

	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// uprobeOfThisKernel is the mechanism that the kernel should have, and what
// the reason of a point must hold if that is not the best one.
func uprobeOfThisKernel(t *testing.T) (mechanism, reason string) {
	t.Helper()
	kernel, err := features.LinuxVersionCode()
	if err != nil {
		t.Fatal(err)
	}
	if kernel < 6<<16|6<<8 {
		return "uprobe", "uprobe_multi: not in this kernel (6.6 or newer)"
	}
	return "uprobe_multi", ""
}

// A program that DMLib cannot enter is watched by the kernel, where its functions
// begin and where they end.
func TestUprobes(t *testing.T) {
	program := targets.Build(t, "testdata/calls.c", "-static")
	places := map[string]attunev1.Place{"entry": attunev1.Place_PLACE_ENTRY, "exit": attunev1.Place_PLACE_EXIT}
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			b := start(t, func(c *Config) { c.UseBPF = true })
			b.sampleEvery(t, 20*time.Millisecond)
			spec := call("own_work", false)
			spec.Place = place
			b.addPoint(t, 3, spec)
			target := targets.Start(t, program, b.controller.Environment()...)
			if err := b.controller.Follow(target.PID); err != nil {
				t.Fatal(err)
			}
			status := b.placed(t, 3)
			mechanism, reason := uprobeOfThisKernel(t)
			if status.GetState() != attunev1.PointState_POINT_STATE_PLACED || status.GetMechanism() != mechanism || !strings.Contains(status.GetReason(), reason) {
				t.Fatalf("point: %v", status)
			}
			target.Ask(t, "1000")
			if got := b.counts(t, 3, 1000); got != 1000 {
				t.Errorf("counted %d calls of 1000", got)
			}
			process := event(t, b, "end", func(m *attunev1.PublishRequest) (*attunev1.ProcessEnded, bool) {
				if m.GetProcessEnded() != nil {
					return m.GetProcessEnded(), true
				}
				if target != nil {
					target.EndWell(t)
					target = nil
				}
				return nil, false
			})
			if process.WaitStatus == nil || process.GetWaitStatus() != 0 {
				t.Errorf("end: %v", process)
			}
			b.stop(t)
		})
	}
}

// A program that was replaced while it runs is watched where it runs: probes in
// its successor would see nothing, and stand at any place in it.
func TestUprobesInReplacedFile(t *testing.T) {
	program, successor := targets.Build(t, "testdata/calls.c", "-static"), targets.Build(t, "testdata/calls.c", "-static", "-O0")
	target := targets.Start(t, program)
	if err := os.Rename(successor, program); err != nil {
		t.Fatal(err)
	}
	b := start(t, func(c *Config) { c.UseBPF = true })
	b.sampleEvery(t, 20*time.Millisecond)
	b.addPoint(t, 3, call("own_work", false))
	if err := b.controller.Follow(target.PID); err != nil {
		t.Fatal(err)
	}
	if status := b.placed(t, 3); status.GetState() != attunev1.PointState_POINT_STATE_PLACED {
		t.Fatalf("point: %v", status)
	}
	target.Ask(t, "1000")
	if got := b.counts(t, 3, 1000); got != 1000 {
		t.Errorf("counted %d calls of 1000", got)
	}
	target.EndWell(t)
	b.stop(t)
}

// What was counted after the last interval comes with the end of the process.
func TestUprobesAtTheEnd(t *testing.T) {
	b := start(t, func(c *Config) { c.UseBPF = true })
	b.sampleEvery(t, time.Hour)
	b.addPoint(t, 3, call("own_work", false))
	target := targets.Start(t, targets.Build(t, "testdata/calls.c", "-static"), b.controller.Environment()...)
	if err := b.controller.Follow(target.PID); err != nil {
		t.Fatal(err)
	}
	if status := b.placed(t, 3); status.GetState() != attunev1.PointState_POINT_STATE_PLACED {
		t.Fatalf("point: %v", status)
	}
	target.Ask(t, "1000")
	target.EndWell(t)
	if got := b.counts(t, 3, 1000); got != 1000 {
		t.Errorf("counted %d calls of 1000", got)
	}
	b.stop(t)
}
