// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package uprobe

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/internal/testing/leaktest"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	atEntry = attunev1.Place_PLACE_ENTRY
	atExit  = attunev1.Place_PLACE_EXIT
	atBoth  = attunev1.Place_PLACE_BOTH
)

// mechanisms: every test of counting runs both ways of attaching.
func mechanisms() map[string]Options {
	return map[string]Options{"uprobe_multi": {}, "uprobe": {singly: true}}
}

func TestCountsAreExact(t *testing.T) {
	binary := mustCompile(t, "target.c")
	tests := []struct {
		function string
		symbol   string
		class    InstructionClass
	}{
		{"nop5", "starts_with_nop5", InstructionOptimised},
		{"push", "starts_with_push", InstructionEmulated},
		{"mov", "starts_with_mov", InstructionSingleStepped},
		{"pad", "starts_with_pad", InstructionEmulated}, // what follows the landing pad
	}
	if !kernelHas(t, linuxWithNops) {
		tests[0].class = InstructionSingleStepped
	}
	for mechanism, opts := range mechanisms() {
		t.Run(mechanism, func(t *testing.T) {
			u := mustUprobes(t, opts)
			target := mustStartTarget(t, binary)
			for i, test := range tests {
				point := uint16(i + 1)
				a := mustAttach(t, u, Spec{Path: binary, Symbols: mustSymbols(t, binary, test.symbol), Point: point})
				status := a.Symbols()[0]
				if cost, measured := a.Cost(); status.Class != test.class || cost <= 0 || !measured {
					t.Errorf("%s: %+v", test.symbol, status)
				}
				mustWatch(t, u, target.PID, point)
				const calls = 5000
				target.mustCall(t, "%s %d", test.function, calls)
				got := mustAggregate(t, u, target.PID, point)
				if got.Count != calls || got.Sum != calls*(calls-1)/2 || got.Min != 0 || got.Max != calls-1 {
					t.Errorf("%s: %d hits, sum %d, min %d, max %d", test.symbol, got.Count, got.Sum, got.Min, got.Max)
				}
				// 0; 1; 2 and 3; 4 to 7; ...
				if got.Histogram[0] != 1 || got.Histogram[1] != 1 || got.Histogram[4] != 8 || got.Histogram[13] != calls-4096 {
					t.Errorf("%s: histogram %v", test.symbol, got.Histogram)
				}
			}
		})
	}
}

func TestThreadsAreCountedTogether(t *testing.T) {
	binary := mustCompile(t, "target.c")
	u := mustUprobes(t, Options{})
	target := mustStartTarget(t, binary)
	mustAttach(t, u, Spec{Path: binary, Symbols: mustSymbols(t, binary, "starts_with_push"), Point: 1})
	mustWatch(t, u, target.PID, 1)
	const calls = 50_000
	target.mustCall(t, "threads:push %d", calls)
	got := mustAggregate(t, u, target.PID, 1)
	if got.Count != 4*calls || got.Sum != 4*calls*(calls-1)/2 || got.Min != 0 || got.Max != calls-1 {
		t.Errorf("%d hits, sum %d, min %d, max %d", got.Count, got.Sum, got.Min, got.Max)
	}
}

func TestOnlyWatchedProcessesCount(t *testing.T) {
	binary := mustCompile(t, "target.c")
	for mechanism, opts := range mechanisms() {
		t.Run(mechanism, func(t *testing.T) {
			u := mustUprobes(t, opts)
			first, second := mustStartTarget(t, binary), mustStartTarget(t, binary)
			spec := Spec{Path: binary, Symbols: mustSymbols(t, binary, "starts_with_push"), Point: 3}
			one := mustAttach(t, u, spec)
			two := mustAttach(t, u, spec)
			if one.shared != two.shared || len(u.attached) != 1 {
				t.Fatal("attached twice to one file")
			}
			mustWatch(t, u, first.PID, 3)
			second.mustCall(t, "push 1000") // before anybody asks
			mustWatch(t, u, second.PID, 3)
			first.mustCall(t, "push 100")
			second.mustCall(t, "push 10")
			one.Close() // the other hold remains
			first.mustCall(t, "push 1")
			if err := u.UnwatchProcess(second.PID, 3); err != nil {
				t.Fatal(err)
			}
			second.mustCall(t, "push 1000")
			if got := mustAggregate(t, u, first.PID, 3); got.Count != 101 {
				t.Errorf("first: %d hits, want 101", got.Count)
			}
			if u.ReadAggregate(second.PID, 3, Closed, &Aggregate{}) {
				t.Error("second is still watched")
			}
			mustWatch(t, u, second.PID, 3)
			second.mustCall(t, "push 7")
			if got := mustAggregate(t, u, second.PID, 3); got.Count != 7 {
				t.Errorf("second, watched anew: %d hits, want 7", got.Count)
			}
		})
	}
}

func TestLibraryOfRunningProcess(t *testing.T) {
	u := mustUprobes(t, Options{})
	target := mustStartTarget(t, mustCompile(t, "target.c"))
	path := mustFindMapped(t, target.PID, "libc.so")
	file, err := os.Open(fmt.Sprintf("/proc/%d/root%s", target.PID, path))
	if err != nil {
		t.Fatal(err)
	}
	mustAttach(t, u, Spec{File: file, Path: path, Symbols: mustSymbols(t, path, "getppid", "usleep"), Point: 9})
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	mustWatch(t, u, target.PID, 9)
	target.mustCall(t, "getppid 300")
	target.mustCall(t, "sleeps 3 1")
	if got := mustAggregate(t, u, target.PID, 9); got.Count != 303 {
		t.Errorf("%d hits, want 303", got.Count)
	}
}

func TestParameterAndReturnValue(t *testing.T) {
	binary := mustCompile(t, "target.c")
	u := mustUprobes(t, Options{})
	target := mustStartTarget(t, binary)
	symbols := mustSymbols(t, binary, "starts_with_push")
	for parameter := range uint32(6) {
		point := uint16(1 + parameter)
		mustAttach(t, u, Spec{Path: binary, Symbols: symbols, Point: point, Parameter: parameter})
		mustWatch(t, u, target.PID, point)
	}
	mustAttach(t, u, Spec{Path: binary, Symbols: symbols, Point: 7, Place: atExit})
	mustWatch(t, u, target.PID, 7)
	target.mustCall(t, "push 1 10")
	for i, want := range []uint64{10, 11, 12, 13, 14, 15, 11} { // the function returns its argument + 1
		if got := mustAggregate(t, u, target.PID, uint16(i+1)); got.Count != 1 || got.Sum != want {
			t.Errorf("point %d: %d hits, value %d, want %d", i+1, got.Count, got.Sum, want)
		}
	}
}

func TestDurations(t *testing.T) {
	binary := mustCompile(t, "target.c")
	for mechanism, opts := range mechanisms() {
		t.Run(mechanism, func(t *testing.T) {
			u := mustUprobes(t, opts)
			target := mustStartTarget(t, binary)
			mustAttach(t, u, Spec{Path: binary, Symbols: mustSymbols(t, binary, "sleeps"), Point: 1, Place: atBoth})
			mustAttach(t, u, Spec{Path: binary, Symbols: mustSymbols(t, binary, "recursive"), Point: 2, Place: atBoth})
			mustWatch(t, u, target.PID, 1)
			mustWatch(t, u, target.PID, 2)
			target.mustCall(t, "sleeps 5 2000")
			slept := mustAggregate(t, u, target.PID, 1)
			if slept.Count != 5 || time.Duration(slept.Min) < 2*time.Millisecond || time.Duration(slept.Max) > 10*time.Second {
				t.Errorf("slept %d times, %v to %v", slept.Count, time.Duration(slept.Min), time.Duration(slept.Max))
			}
			target.mustCall(t, "threads:recursive 20 30") // 31 calls deep, in four threads
			if got := mustAggregate(t, u, target.PID, 2); got.Count != 4*20*31 {
				t.Errorf("%d calls, want %d", got.Count, 4*20*31)
			}
		})
	}
}

func TestPredicate(t *testing.T) {
	binary := mustCompile(t, "target.c")
	u := mustUprobes(t, Options{})
	target := mustStartTarget(t, binary)
	mustAttach(t, u, Spec{
		Path: binary, Symbols: mustSymbols(t, binary, "starts_with_push"), Point: 1, MinValue: 100, MaxValue: 199,
	})
	mustWatch(t, u, target.PID, 1)
	target.mustCall(t, "push 1000")
	if got := mustAggregate(t, u, target.PID, 1); got.Count != 100 || got.Min != 100 || got.Max != 199 {
		t.Errorf("%d hits from %d to %d", got.Count, got.Min, got.Max)
	}
}

func TestIntervals(t *testing.T) {
	binary := mustCompile(t, "target.c")
	u := mustUprobes(t, Options{})
	target := mustStartTarget(t, binary)
	mustAttach(t, u, Spec{Path: binary, Symbols: mustSymbols(t, binary, "starts_with_push"), Point: 1})
	mustWatch(t, u, target.PID, 1)
	tests := []struct {
		call     string
		min, max uint64
		count    uint64
	}{
		{"push 3 500", 500, 500, 3},
		{"push 2 20", 20, 20, 5},
		{"", 0, 0, 5},
		{"push 10", 0, 9, 15},
		{"push 1 7", 7, 7, 16},
	}
	for _, test := range tests {
		if test.call != "" {
			target.mustCall(t, "%s", test.call)
		}
		if got := mustAggregate(t, u, target.PID, 1); got.Min != test.min || got.Max != test.max || got.Count != test.count || got.Known != (test.call != "") {
			t.Errorf("%q: min %d, max %d, count %d", test.call, got.Min, got.Max, got.Count)
		}
	}
}

// goFunction is probed in this very process, which is a Go program.
//
//go:noinline
func goFunction(a, b int) int { return a*b + 1 }

func TestGoProgram(t *testing.T) {
	u := mustUprobes(t, Options{})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	symbols := []Symbol{mustGoSymbol(t, self, goFunction)}
	for _, place := range []attunev1.Place{atExit, atBoth} {
		if _, err := u.Attach(Spec{Path: self, Symbols: symbols, Point: 1, Place: place}); !errors.Is(err, bpf.ErrUnsupported) || !strings.Contains(fmt.Sprint(err), "Go moves its stacks") {
			t.Errorf("%v: error %v", place, err)
		}
	}
	for parameter := range uint32(2) {
		mustAttach(t, u, Spec{Path: self, Symbols: symbols, Point: 1 + uint16(parameter), Parameter: parameter})
		mustWatch(t, u, os.Getpid(), 1+uint16(parameter))
	}
	sum := 0
	for i := range 10 {
		sum += goFunction(i, 100)
	}
	if sum != 4510 {
		t.Errorf("the probed function computes %d", sum)
	}
	if got := mustAggregate(t, u, os.Getpid(), 1); got.Count != 10 || got.Sum != 45 {
		t.Errorf("first parameter: %d hits, sum %d", got.Count, got.Sum)
	}
	if got := mustAggregate(t, u, os.Getpid(), 2); got.Count != 10 || got.Sum != 1000 {
		t.Errorf("second parameter: %d hits, sum %d", got.Count, got.Sum)
	}
}

func TestAttachDetachLeavesNothing(t *testing.T) {
	binary := mustCompile(t, "target.c")
	target := mustStartTarget(t, binary)
	symbols := mustSymbols(t, binary, "starts_with_push", "starts_with_mov", "recursive")
	before := len(leaktest.Descriptors())
	u := mustUprobes(t, Options{})
	var attaching time.Duration
	rounds := targets.Fewer(50)
	for range rounds {
		start := time.Now()
		a, err := u.Attach(Spec{Path: binary, Symbols: symbols, Point: 1})
		if err != nil {
			t.Fatal(err)
		}
		attaching += time.Since(start)
		mustWatch(t, u, target.PID, 1)
		if err := u.UnwatchProcess(target.PID, 1); err != nil {
			t.Fatal(err)
		}
		a.Close()
	}
	start := time.Now()
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("attach %v each; close with the last detaching %v", attaching/time.Duration(rounds), time.Since(start))
	if after := len(leaktest.Descriptors()); after > before {
		t.Errorf("descriptors %d, then %d: %v", before, after, leaktest.Descriptors())
	}
	if _, err := u.Attach(Spec{Path: binary, Symbols: symbols, Point: 1}); !errors.Is(err, ErrClosed) {
		t.Errorf("attached after close: %v", err)
	}
}
