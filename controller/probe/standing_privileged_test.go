// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package probe

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/probe/symbols"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestClaimedBeforeItStands: somebody opens the file to write after it was leased, and
// before the point is among those that yieldFiles looks at.
func TestClaimedBeforeItStands(t *testing.T) {
	const point = 5
	binary := targets.Build(t, "../testdata/calls.c", "-static")
	target := targets.Start(t, binary)
	images, err := objfile.Images(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	spec := &attunev1.MeasurePoint{Target: &attunev1.MeasurePoint_Function{
		Function: &attunev1.FunctionTarget{Symbols: []string{"own_work"}},
	}}
	spots, err := symbols.SpotsOf(images[0], spec)
	if err != nil {
		t.Fatal(err)
	}
	uprobes, err := uprobe.New(uprobe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer uprobes.Close() // the kernel may detach for longer
	placer := New(Options{Uprobes: func() (*uprobe.Uprobes, error) { return uprobes, nil }})
	defer placer.Close()
	placer.points.add(point, spec)
	attachment, err := uprobes.Attach(uprobe.Spec{Path: binary, Symbols: spots, Point: point})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := placer.kernel.leaveToKernel(images[0], nil, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	target.EndWell(t) // nobody can write what is executed
	k := placer.kernel
	k.yielding.Do(func() {}) // it looks too early
	k.mu.Lock()
	stood := make(chan struct{})
	go func() { k.stand(point, heldAttachment{attachment, kept}); close(stood) }()
	patience.Until(t, "the lease", func() bool { return !attachment.Claimed() })
	if _, err := unix.Open(binary, unix.O_WRONLY|unix.O_NONBLOCK, 0); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("open to write: %v", err)
	}
	k.mu.Unlock()
	patience.Closed(t, "the point", stood)
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, stands := k.standing[point]; stands {
		t.Error("the point stands in a file that somebody waits to write")
	}
}
