// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package controller

import (
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestUprobesInOverwrittenFile: a point that waits in the program's file for the next
// process leaves it when somebody writes the file, and the next program is whole.
func TestUprobesInOverwrittenFile(t *testing.T) {
	program, successor := targets.Build(t, "testdata/calls.c", "-static"), targets.Build(t, "testdata/calls.c", "-static", "-O0")
	place := ownWork(t, program)
	next := files.Read(t, successor)
	b := start(t, func(c *Config) { c.UseBPF = true })
	b.sampleEvery(t, 20*time.Millisecond)
	b.addPoint(t, 3, call("own_work", false))
	run := func(target *targets.Target) {
		t.Helper()
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
	}
	run(targets.Start(t, program))
	if err := targets.WriteProgram(program, next); err != nil {
		t.Fatal(err)
	}
	target := targets.Start(t, program)
	var now [1]byte
	if err := targets.ReadMemory(target.PID, place.Value, now[:]); err != nil {
		t.Fatal(err)
	}
	if want := next[place.FileOffset]; now[0] != want {
		t.Errorf("where the earlier program had its function the next one has %#x, not %#x", now[0], want)
	}
	run(target)
	b.stop(t)
}

func ownWork(t *testing.T, program string) objfile.Symbol {
	t.Helper()
	file, err := objfile.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // read only
	symbol, err := file.SymbolOf("own_work", objfile.Function)
	if err != nil {
		t.Fatal(err)
	}
	return symbol
}
