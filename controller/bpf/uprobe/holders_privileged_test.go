// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package uprobe

import (
	"os"
	"testing"

	"github.com/cilium/ebpf/link"

	"github.com/attune-hpc/attune/controller/bpf"
)

// TestReturnsAreTakenOnce: a return is taken once, for however many processes its point is held,
// and wherever the kernel lets it stand.
func TestReturnsAreTakenOnce(t *testing.T) {
	for mechanism, opts := range mechanisms() {
		for name, translated := range map[string]bool{"": false, "beside a translated program": true} {
			t.Run(mechanism+"/"+name, func(t *testing.T) {
				binary := mustCompile(t, "target.c")
				if translated {
					mustStartTarget(t, mustTranslator(t))
				}
				u := mustUprobes(t, opts)
				holders := []*targetProcess{mustStartTarget(t, binary), mustStartTarget(t, binary), mustStartTarget(t, binary)}
				returning := Spec{Path: binary, Symbols: mustSymbols(t, binary, "starts_with_push"), Point: 1, Place: atExit}
				timed := returning
				timed.Point, timed.Place = 2, atBoth
				for _, spec := range []Spec{returning, timed} {
					for _, holder := range holders {
						spec.PID = holder.PID
						mustAttach(t, u, spec)
						mustWatch(t, u, holder.PID, spec.Point)
					}
				}
				for _, holder := range holders {
					holder.mustCall(t, "push 10")
					for _, point := range []uint16{1, 2} {
						if got := mustAggregate(t, u, holder.PID, point); got.Count != 10 || got.Lost != 0 {
							t.Errorf("point %d: %d returns, %d lost; want 10", point, got.Count, got.Lost)
						}
					}
				}
			})
		}
	}
}

// TestHitsOfAnotherHolder: a probe whose cookie names a process takes no hit of another one, of
// which kernels without uprobe_multi tell it at returns.
func TestHitsOfAnotherHolder(t *testing.T) {
	binary := mustCompile(t, "target.c")
	u := mustUprobes(t, Options{singly: true})
	target := mustStartTarget(t, binary)
	spec := Spec{Path: binary, Symbols: mustSymbols(t, binary, "starts_with_push"), Point: 1, PID: target.PID, Place: atExit}
	own := mustAttach(t, u, spec)
	mustWatch(t, u, target.PID, 1)
	executable, err := link.OpenExecutable(binary)
	if err != nil {
		t.Fatal(err)
	}
	legs, err := u.programs.legs(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, holder := range []int{target.PID, os.Getpid()} {
		spot := ofHolder(own.shared.spots, holder)[0]
		also, err := legs[0].Attach(executable, []bpf.Spot{spot}, 0, false)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = also.Close() }) // only for the test
	}
	target.mustCall(t, "push 10")
	if got := mustAggregate(t, u, target.PID, 1); got.Count != 2*10 {
		t.Errorf("%d hits, want those of the point's own probe and of another one for this process: 20", got.Count)
	}
}
