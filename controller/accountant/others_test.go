// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/procid"
)

// unsteady is a source that sees one process, but not at its first look.
type unsteady struct {
	source
	pid    int
	looked bool
	seen   func()
}

func (u *unsteady) look() (n now, err error) {
	if !u.looked {
		u.looked = true
		return n, errors.New("too many open files")
	}
	if stat, err := procid.ReadStat(u.pid); err == nil && !stat.Zombie() {
		n.alive = []living{{pid: u.pid}}
		u.seen()
	}
	return n, nil
}

// TestOthersAfterAFailedLook: what is left of a command is waited for, and ended, though one look at it fails.
func TestOthersAfterAFailedLook(t *testing.T) {
	for _, tt := range []struct {
		name string
		seen func(sleep *exec.Cmd) // what happens when it is seen
		do   func(*Accountant)
	}{
		{"ended", func(*exec.Cmd) {}, (*Accountant).endOthers},
		{"waited for", func(sleep *exec.Cmd) { _ = sleep.Process.Kill() }, func(a *Accountant) {
			if !a.awaitOthers(t.Context()) {
				t.Error("says that no process was left")
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sleep := exec.Command("sleep", "1000")
			if err := sleep.Start(); err != nil {
				t.Fatal(err)
			}
			a := &Accountant{source: &unsteady{pid: sleep.Process.Pid, seen: func() { tt.seen(sleep) }}, sampler: &sampler{}}
			a.sampler.enforcer.ender = ender{group: &group{}}
			a.sampler.enforcer.ender.begin(time.Now())
			tt.do(a)
			if stat, err := procid.ReadStat(sleep.Process.Pid); err != nil || !stat.Zombie() {
				t.Errorf("it lives on: %+v, %v", stat, err)
			}
			_ = sleep.Process.Kill() // it may have ended
			_ = sleep.Wait()         // killed
		})
	}
}

// TestAwaitOthersUntilInterrupted: a wait for what does not end is over with its context.
func TestAwaitOthersUntilInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := &Accountant{source: &unsteady{pid: 1, seen: cancel}}
	if !a.awaitOthers(ctx) {
		t.Error("says that no process was left")
	}
}
