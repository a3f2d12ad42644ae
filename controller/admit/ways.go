// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/attune-hpc/attune/controller/gate"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

// ways opens the ways into members, and has measure points placed by them.
type ways struct{ *Options }

// place places the measure points in a process. Whoever let go of it meanwhile has
// not seen that.
func (w ways) place(ctx context.Context, t *member.Member, held bool) {
	w.Placer.Admit(ctx, t, held)
	if !t.Alive() {
		w.Placer.Release(t.Handle())
	}
}

// inside places the measure points in a process with DMLib.
func (w ways) inside(ctx context.Context, t *member.Member, held bool) {
	if !t.AdmitInside() {
		return // it has ended
	}
	t.SetMechanism(member.MechanismDMLib, true, "")
	w.openWays(t)
	w.Outbox.TellNow(t)
	w.place(ctx, t, held)
}

// outside places the measure points in a process without DMLib, for a reason; late
// says that it may yet come. False: it was admitted, has come or has ended.
func (w ways) outside(t *member.Member, late bool, reason string) bool {
	if !t.AdmitOutside(late) {
		return false
	}
	t.SetMechanism(member.MechanismDMLib, false, reason)
	w.openWays(t)
	w.Outbox.TellNow(t)
	w.place(w.Context, t, false)
	return true
}

// whyNoPreload says why a program cannot have DMLib preloaded, if so.
func (w ways) whyNoPreload(t *member.Member) string {
	if w.Library == "" {
		return "DMLib is not part of this build"
	}
	return objfile.InspectExecuted(t.PID()).PreloadRefusal()
}

func (w ways) whyNoDMLib(t *member.Member) string {
	if why := w.whyNoPreload(t); why != "" {
		return why
	}
	if t.Age() > time.Since(w.began)+procid.Tick { // ages are in whole ticks
		return "it ran before attune did: name it to `attune attach` as well"
	}
	if gate.InSandbox(t.PID()) {
		return "it is under seccomp filters that its starter is not under, which might kill it for what attune's library does"
	}
	if preloaded(t.PID()) {
		return "its loader has not loaded attune's library, which LD_PRELOAD names"
	}
	return "it was started without attune's library: LD_PRELOAD in its environment does not name it"
}

// preloaded says whether the environment in which a program was started names DMLib.
func preloaded(pid int) bool {
	environment, _ := procid.Environ(pid) // what cannot be read names nothing
	return slices.ContainsFunc(environment, func(variable []byte) bool {
		return bytes.HasPrefix(variable, []byte("LD_PRELOAD=")) && bytes.Contains(variable, []byte("libattune-dm"))
	})
}

func (w ways) openWays(t *member.Member) {
	if _, err := w.Meter.Uprobes(); err != nil {
		t.SetMechanism(member.MechanismUprobe, false, err.Error())
	} else {
		t.SetMechanism(member.MechanismUprobe, true, "")
	}
	if err := canWrite(t.PID()); err != nil {
		t.SetMechanism(member.MechanismVMWrite, false, err.Error())
	} else {
		t.SetMechanism(member.MechanismVMWrite, true, "")
	}
}

// closeWays notes that none of the ways into a process is open.
func (w ways) closeWays(t *member.Member) {
	for _, mechanism := range []string{member.MechanismDMLib, member.MechanismUprobe, member.MechanismVMWrite} {
		t.SetMechanism(mechanism, false, t.OutOfReach().Error())
	}
}

// canWrite says whether this user may touch the memory of a process.
func canWrite(pid int) error {
	if err := proc.Accessible(pid); errors.Is(err, proc.ErrPermission) {
		return err
	}
	return nil
}
