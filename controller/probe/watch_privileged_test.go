// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package probe

import (
	"errors"
	"testing"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/probe/symbols"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// image is one of the images of a process.
type image struct {
	Process
	handle uint64
	pid    int
}

func (i image) Handle() uint64 { return i.handle }
func (i image) PID() int       { return i.pid }

// Identity without a start: that of the process that has the pid.
func (i image) Identity() procid.Identity { return procid.Identity{PID: i.pid} }
func (i image) Alive() bool               { return i.handle != 0 }

// After an exec the kernel counts for the new image, from 0, whatever the old
// one still does: the news of its end may come late.
func TestWatchBelongsToTheLatestImage(t *testing.T) {
	const point, calls = 5, 100
	binary := targets.Build(t, "../testdata/calls.c", "-static")
	target := targets.Start(t, binary)
	images, err := objfile.Images(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	spots, err := symbols.SpotsOf(images[0], &attunev1.MeasurePoint{Target: &attunev1.MeasurePoint_Function{
		Function: &attunev1.FunctionTarget{Symbols: []string{"own_work"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	uprobes, err := uprobe.New(uprobe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer uprobes.Close() // the kernel may detach for longer
	attachment, err := uprobes.Attach(uprobe.Spec{Path: binary, Symbols: spots, Point: point})
	if err != nil {
		t.Fatal(err)
	}
	defer attachment.Close()
	owners := watchOwners{of: make(map[watchKey]*host)}
	before := &host{process: image{handle: 1, pid: target.PID}}
	after := &host{process: image{handle: 2, pid: target.PID}}
	watch := func(t *testing.T, image *host) {
		t.Helper()
		if err := owners.begin(uprobes, image, point, captures{}); err != nil {
			t.Fatal(err)
		}
		target.Ask(t, "100")
	}
	watch(t, before)
	watch(t, after)
	if err := owners.begin(uprobes, before, point, captures{}); !errors.Is(err, errReplaced) {
		t.Errorf("the old image watches: %v", err)
	}
	ended := &host{process: image{pid: target.PID}}
	if err := owners.begin(uprobes, ended, point, captures{}); !errors.Is(err, errReplaced) {
		t.Errorf("an image that has ended watches: %v", err)
	}
	if err := owners.end(uprobes, before, point); err != nil {
		t.Error(err)
	}
	target.Ask(t, "100")
	var seen uprobe.Aggregate
	if !uprobes.ReadAggregate(target.PID, point, uprobe.Closed, &seen) || seen.Count != 2*calls {
		t.Errorf("counted %d calls, want %d", seen.Count, 2*calls)
	}
	if owners.has(before, point) || !owners.has(after, point) {
		t.Error("the counts do not belong to the new image")
	}
	if err := owners.end(uprobes, after, point); err != nil || uprobes.ReadAggregate(target.PID, point, uprobe.Closed, &seen) {
		t.Errorf("still watched, %v", err)
	}
}
