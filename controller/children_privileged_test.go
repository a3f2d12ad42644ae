// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package controller

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestForkedChildElsewhere: who listens at the gate's path in the root directory of a forked
// child is not the gate: the child does not come, and is entered instead.
func TestForkedChildElsewhere(t *testing.T) {
	program := targets.Build(t, "testdata/confines.c")
	b := start(t, func(c *Config) { c.LateLibrary = true })
	b.sampleEvery(t, 20*time.Millisecond)
	b.addPoint(t, 3, &attunev1.MeasurePoint{
		Id: "small", Target: &attunev1.MeasurePoint_Hook{Hook: "malloc"}, MinValue: 100, MaxValue: 100,
	})
	root := t.TempDir()
	trap := filepath.Join(root, b.controller.config.GatePath)
	if err := os.MkdirAll(filepath.Dir(trap), 0o755); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unixpacket", trap)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	caught := make(chan struct{}, 1)
	go func() {
		if c, err := listener.Accept(); err == nil {
			caught <- struct{}{}
			_ = c.Close()
		}
	}()
	cmd := exec.Command(program, "elsewhere", root)
	cmd.Env = append(os.Environ(), b.controller.Environment()...)
	target := targets.StartCommand(t, cmd)
	pid, err := strconv.Atoi(target.Ask(t, "0"))
	if err != nil {
		t.Fatal(err)
	}
	var child *member.Member
	patience.Until(t, "the child to be entered instead", func() bool {
		target.Ask(t, "5000")
		child = b.controller.members.OfPID(pid)
		return child != nil && child.Memory() != nil
	})
	for b.placed(t, 3).GetProcess() != child.Handle() {
	}
	target.Ask(t, "5000")
	if got := b.counts(t, 3, 5000); got < 5000 {
		t.Errorf("counted %d blocks of 100 bytes, want 5000 at least", got)
	}
	select {
	case <-caught:
		t.Error("the child came to a socket that is not the gate")
	default:
	}
	b.stop(t)
	target.EndWell(t)
}
