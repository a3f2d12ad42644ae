// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestForkedChildren: a child that stays is measured; one under a seccomp filter that
// kills for system calls of ours goes on as if nobody watched.
func TestForkedChildren(t *testing.T) {
	for _, row := range []struct {
		name     string
		arg      string
		late     bool // and the gate is out of reach
		measured bool
	}{
		{"free", "free", false, true},
		{"confined", "confined", false, false},
		{"free, without a gate", "free", true, true},
		{"confined, without a gate", "confined", true, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			program := targets.Build(t, "testdata/confines.c")
			b := start(t, func(c *Config) { c.LateLibrary = row.late })
			b.sampleEvery(t, 20*time.Millisecond)
			b.addPoint(t, 3, &attunev1.MeasurePoint{
				Id: "small", Target: &attunev1.MeasurePoint_Hook{Hook: "malloc"}, MinValue: 100, MaxValue: 100,
			})
			cmd := exec.Command(program, row.arg)
			cmd.Env = append(os.Environ(), b.controller.Environment()...)
			target := targets.StartCommand(t, cmd)
			pid, err := strconv.Atoi(target.Ask(t, "0"))
			if err != nil {
				t.Fatal(err)
			}
			if row.late {
				_ = os.Remove(b.controller.config.GatePath) // as for another user's process, or in a chroot
			}
			allocate := func() {
				if got := target.Ask(t, "5000"); got != strconv.Itoa(pid) {
					t.Fatalf("the child %d says %q", pid, got)
				}
			}
			for range 200 { // far longer than a child is left alone
				allocate()
			}
			if row.late && !row.measured {
				patience.Until(t, "the child to be looked at", func() bool {
					allocate()
					child := b.controller.members.OfPID(pid)
					return child != nil && strings.Contains(fmt.Sprint(child.Snapshot().GetMechanisms()), "seccomp")
				})
			}
			if row.measured {
				var child *member.Member
				patience.Until(t, "the child to register", func() bool {
					allocate()
					child = b.controller.members.OfPID(pid)
					return child != nil && child.Memory() != nil
				})
				for b.placed(t, 3).GetProcess() != child.Handle() {
				}
				allocate()
				if got := b.counts(t, 3, 5000); got < 5000 {
					t.Errorf("counted %d blocks of 100 bytes, want 5000 at least", got)
				}
			}
			b.stop(t)
			target.EndWell(t)
		})
	}
}
