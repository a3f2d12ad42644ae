// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/link"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/probe"
	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/longgate"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// unmeasured measures nothing.
type unmeasured struct{}

func (unmeasured) Uprobes() (*uprobe.Uprobes, error)             { return nil, errors.ErrUnsupported }
func (unmeasured) Flush()                                        {}
func (unmeasured) Holds(*member.Member) bool                     { return false }
func (unmeasured) Finish(*member.Member, *attunev1.ProcessEnded) {}

// mustAdmission returns one that works until the test ends.
func mustAdmission(t *testing.T) *Admission {
	t.Helper()
	a, serve := mustNew(t, func(*Options) {})
	serve(a.Serve, a.Settle, a.Track)
	return a
}

// mustNew returns one, and what serves it until the test ends.
func mustNew(t *testing.T, options func(*Options)) (a *Admission, serve func(...func(context.Context) error)) {
	t.Helper()
	dir := t.TempDir()
	var work sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	placer := probe.New(probe.Options{Status: func(*attunev1.PointStatus) {}})
	o := Options{
		Members: member.NewSet(), Placer: placer, Meter: unmeasured{}, Cache: objfile.NewCache(), Functions: new(sites.Functions),
		Outbox:   link.NewOutbox(link.OutboxOptions{Send: func(*attunev1.PublishRequest) {}, Heard: func(*member.Member) {}, Undelivered: func(link.Loss) {}}),
		GatePath: filepath.Join(dir, "gate", "g.sock"), GateTimeout: longgate.Limit, Library: longgate.Install(t, dir), JobID: t.Name(),
		Context: ctx, Go: func(f func()) { work.Go(f) }, Log: slog.New(slog.DiscardHandler), Entered: func(int) {},
	}
	options(&o)
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = a.Close()
		placer.Close()
		work.Wait()
	})
	return a, func(loops ...func(context.Context) error) {
		for _, loop := range loops {
			work.Go(func() { _ = loop(ctx) })
		}
	}
}

// TestTrackerThatComesLate: a process that waits at the gate no longer when the tracker has
// time for it, as on a crowded node, is taken in all the same.
func TestTrackerThatComesLate(t *testing.T) {
	const waits = 10 * time.Millisecond
	library := longgate.Install(t, t.TempDir())
	var socket string
	a, serve := mustNew(t, func(o *Options) { o.Library, o.GateTimeout, socket = library, waits, o.GatePath })
	serve(a.Serve, a.Settle)
	target := targets.Start(t, targets.Build(t, "../testdata/settings.c"), "LD_PRELOAD="+library, "ATTUNE_SOCKET="+socket)
	patience.Until(t, "the time that it takes to settle", func() bool { return !a.arrivals.waiting(target.PID) })
	time.Sleep(10 * waits)
	serve(a.Track)
	patience.Until(t, "a process with DMLib", func() bool {
		m := a.entering.Members.OfPID(target.PID)
		return m != nil && m.Memory() != nil
	})
}

// TestAttachDuringExec: a process that executes its program while it is being entered is
// entered there, and is not told of as one that could not be.
func TestAttachDuringExec(t *testing.T) {
	a := mustAdmission(t)
	cmd := exec.Command("sh", "-c", "echo ready; read line; exec cat")
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = input.Close()
		_ = cmd.Wait()
	}()
	if _, err := bufio.NewReader(output).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	shell, err := procid.Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	a.entering.foreign = func(pid int) error { // asked when the image is held
		if asked++; asked > 1 {
			return nil
		}
		if _, err := input.Write([]byte("\n")); err != nil {
			t.Error(err)
		}
		patience.Until(t, "the exec", func() bool {
			now, err := procid.Of(pid)
			return err == nil && now.Image != 0 && !now.SameImage(shell)
		})
		return nil
	}
	attached, err := a.Attach(patience.Context(t), cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer attached.Leave(t.Context())
	if attached.NotInjected != nil || asked != 2 {
		t.Errorf("not entered after %d looks: %v", asked, attached.NotInjected)
	}
	m := a.Members.Get(attached.handle)
	if m == nil || !strings.HasSuffix(m.Snapshot().GetExecutable(), "/cat") {
		t.Errorf("entered %v", m.Snapshot())
	}
}
