// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package uprobe

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/files"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// BenchmarkHit gives the price of one probed call, as the target sees it; the
// unprobed call is below 2 ns.
func BenchmarkHit(b *testing.B) {
	binary := mustCompile(b, "target.c")
	benchmarks := []struct {
		name, function, symbol string
		place                  attunev1.Place
		delivery               attunev1.Delivery
		unwatched              bool
	}{
		{"push/unwatched", "push", "starts_with_push", atEntry, attunev1.Delivery_DELIVERY_AGGREGATE, true},
		{"nop5", "nop5", "starts_with_nop5", atEntry, attunev1.Delivery_DELIVERY_AGGREGATE, false},
		{"push", "push", "starts_with_push", atEntry, attunev1.Delivery_DELIVERY_AGGREGATE, false},
		{"mov", "mov", "starts_with_mov", atEntry, attunev1.Delivery_DELIVERY_AGGREGATE, false},
		{"push/exit", "push", "starts_with_push", atExit, attunev1.Delivery_DELIVERY_AGGREGATE, false},
		{"push/both", "push", "starts_with_push", atBoth, attunev1.Delivery_DELIVERY_AGGREGATE, false},
		{"push/events", "push", "starts_with_push", atEntry, attunev1.Delivery_DELIVERY_EVENT, false},
	}
	for _, bench := range benchmarks {
		b.Run(bench.name, func(b *testing.B) {
			u := mustUprobes(b, Options{})
			target := mustStartTarget(b, binary)
			mustAttach(b, u, Spec{
				Path: binary, Symbols: mustSymbols(b, binary, bench.symbol), Point: 1, Place: bench.place, Delivery: bench.delivery,
			})
			if !bench.unwatched {
				mustWatch(b, u, target.PID, 1)
			}
			ctx, cancel := context.WithCancel(b.Context())
			ended := make(chan error, 1)
			go func() { ended <- u.Run(ctx, func(Batch) {}) }()
			b.ResetTimer()
			before := runTime(b, target.PID)
			target.mustCall(b, "%s %d", bench.function, b.N)
			b.ReportMetric(float64(runTime(b, target.PID)-before)/float64(b.N), "cpu-ns/op")
			b.StopTimer()
			b.ReportMetric(float64(u.Lost())/float64(b.N), "lost/op")
			cancel()
			if err := <-ended; err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkCaptured gives the price of one call of which a number and a string in memory are
// taken, at each or at one in some.
func BenchmarkCaptured(b *testing.B) {
	binary := mustCompile(b, "captures.c", "-no-pie")
	symbols := mustSymbols(b, binary, "takes")
	program := mustProgram(b, &attunev1.MeasurePoint{Captures: []*attunev1.Capture{
		{Name: "small", Source: &attunev1.Capture_Parameter{Parameter: 1}, Type: attunev1.CaptureType_CAPTURE_TYPE_U8, Dereference: []int32{24, 4}},
		{Name: "name", Source: &attunev1.Capture_Parameter{Parameter: 1}, Type: attunev1.CaptureType_CAPTURE_TYPE_STRING, Dereference: []int32{24, 32, 0}},
	}})
	for name, mask := range map[string]uint32{"each": 0, "one in 1024": 1023} {
		b.Run(name, func(b *testing.B) {
			u := mustUprobes(b, Options{})
			target := mustStartTarget(b, binary)
			mustAttach(b, u, Spec{
				Path: binary, Symbols: symbols, Point: 1, Delivery: attunev1.Delivery_DELIVERY_SAMPLED, SampleMask: mask, Program: program,
			})
			mustWatch(b, u, target.PID, 1)
			b.ResetTimer()
			before := runTime(b, target.PID)
			target.mustCall(b, "takes %d", b.N)
			b.ReportMetric(float64(runTime(b, target.PID)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkAttach gives the time until the events of a hundred points, each on a
// function of its own of a library that runs, flow.
func BenchmarkAttach(b *testing.B) {
	const points = 100
	target := mustStartTarget(b, mustCompile(b, "target.c"))
	path := mustFindMapped(b, target.PID, "libc.so")
	functions := mustFunctions(b, path, points)
	for b.Loop() {
		b.StopTimer()
		u := mustUprobes(b, Options{})
		b.StartTimer()
		for i, function := range functions {
			point := uint16(i + 1)
			mustAttach(b, u, Spec{Path: path, Symbols: []Symbol{function}, Point: point, Delivery: attunev1.Delivery_DELIVERY_EVENT})
			mustWatch(b, u, target.PID, point)
		}
		b.StopTimer()
		if err := u.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// mustFunctions finds functions of a library, each address once.
func mustFunctions(b *testing.B, path string, most int) (functions []Symbol) {
	b.Helper()
	file, err := elf.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	all, err := file.DynamicSymbols()
	if err != nil {
		b.Fatal(err)
	}
	for _, symbol := range all {
		if len(functions) == most {
			return functions
		}
		if elf.ST_TYPE(symbol.Info) != elf.STT_FUNC || symbol.Section == elf.SHN_UNDEF {
			continue
		}
		candidate := Symbol{Name: symbol.Name, Offset: mustOffset(b, file, symbol.Value)}
		known := slices.ContainsFunc(functions, func(s Symbol) bool { return s.Offset == candidate.Offset })
		if !known {
			functions = append(functions, candidate)
		}
	}
	b.Fatalf("%s has %d functions", path, len(functions))
	return nil
}

// runTime is the CPU time of a process in nanoseconds: it does not grow while
// others have the CPU.
func runTime(b *testing.B, pid int) uint64 {
	b.Helper()
	text := files.Read(b, fmt.Sprintf("/proc/%d/schedstat", pid))
	var nanos uint64
	if _, err := fmt.Sscan(string(text), &nanos); err != nil {
		b.Fatal(err)
	}
	return nanos
}

// BenchmarkStart gives what a controller pays at its start: for process events, and
// for uprobes with the first point.
func BenchmarkStart(b *testing.B) {
	binary := mustCompile(b, "target.c")
	for b.Loop() {
		before := resident(b)
		start := time.Now()
		events, err := procevent.New(procevent.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms/events")
		afterEvents := resident(b)
		u := mustUprobes(b, Options{})
		start = time.Now()
		mustAttach(b, u, Spec{
			Path: binary, Symbols: mustSymbols(b, binary, "starts_with_push"), Point: 1,
			Delivery: attunev1.Delivery_DELIVERY_EVENT,
		})
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms/uprobe")
		b.ReportMetric(float64(afterEvents-before)/1024, "KiB/events")
		b.ReportMetric(float64(resident(b)-afterEvents)/1024, "KiB/uprobe")
		if err := errors.Join(events.Close(), u.Close()); err != nil {
			b.Fatal(err)
		}
	}
}

// resident is the resident memory of this process, in bytes.
func resident(b *testing.B) int {
	b.Helper()
	stat, err := procid.ReadStat(os.Getpid())
	if err != nil {
		b.Fatal(err)
	}
	return int(stat.ResidentPages) * os.Getpagesize()
}
