// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package uprobe

import (
	"errors"
	"testing"

	"github.com/cilium/ebpf"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestCallsThatEndInJumps: each function of a chain of jumps has its own call, at one frame, also
// where calls at this frame were left by longjmp.
func TestCallsThatEndInJumps(t *testing.T) {
	binary := mustCompile(t, "target.c")
	for mechanism, opts := range mechanisms() {
		t.Run(mechanism, func(t *testing.T) {
			u := mustUprobes(t, opts)
			target := mustStartTarget(t, binary)
			symbols := mustSymbols(t, binary, "wraps", "jumps", "leaves")
			mustAttach(t, u, Spec{Path: binary, Symbols: symbols, Point: 1, PID: target.PID, Place: atBoth})
			mustWatch(t, u, target.PID, 1)
			var want uint64
			for range 3 {
				target.mustCall(t, "wraps 10")
				want += 2 * 10
				target.mustCall(t, "leaves 10")
			}
			if got := mustAggregate(t, u, target.PID, 1); got.Count != want || got.Lost != 0 {
				t.Errorf("%d calls, %d lost; want %d", got.Count, got.Lost, want)
			}
		})
	}
}

// TestDeepCallsAreLost: the kernel sees 64 returns of a thread; the calls that are deeper count as
// lost, and are in nobody's way afterwards.
func TestDeepCallsAreLost(t *testing.T) {
	binary := mustCompile(t, "target.c")
	for mechanism, opts := range mechanisms() {
		t.Run(mechanism, func(t *testing.T) {
			u := mustUprobes(t, opts)
			target := mustStartTarget(t, binary)
			mustAttach(t, u, Spec{Path: binary, Symbols: mustSymbols(t, binary, "recursive"), Point: 1, PID: target.PID, Place: atBoth})
			mustWatch(t, u, target.PID, 1)
			target.mustCall(t, "recursive 1 100")
			if got := mustAggregate(t, u, target.PID, 1); got.Count == 0 || got.Lost == 0 || got.Count+got.Lost != 101 {
				t.Errorf("%d calls, %d lost; want 101 together", got.Count, got.Lost)
			}
			if left := callsUnderWay(t, u); len(left) > 0 {
				t.Errorf("%d calls stay", len(left))
			}
		})
	}
}

// TestForgottenCallsAreLost: a call that made room for newer ones is told of as lost, with an
// aggregate as well as with records.
func TestForgottenCallsAreLost(t *testing.T) {
	binary := mustCompile(t, "target.c")
	for _, delivery := range []attunev1.Delivery{attunev1.Delivery_DELIVERY_AGGREGATE, attunev1.Delivery_DELIVERY_EVENT} {
		t.Run(delivery.String(), func(t *testing.T) {
			u := mustUprobes(t, Options{})
			target := mustStartTarget(t, binary)
			mustAttach(t, u, Spec{
				Path: binary, Symbols: mustSymbols(t, binary, "waits"), Point: 1, PID: target.PID, Place: atBoth, Delivery: delivery,
			})
			mustWatch(t, u, target.PID, 1)
			if answer := target.Ask(t, "waits 1"); answer != "waits" {
				t.Fatalf("target answers %q", answer)
			}
			for _, key := range callsUnderWay(t, u) {
				if err := u.programs.maps.Calls.Delete(key); err != nil {
					t.Fatal(err)
				}
			}
			target.mustCall(t, "") // it returns
			if got := mustAggregate(t, u, target.PID, 1); got.Count != 0 || got.Lost != 1 {
				t.Errorf("%d calls, %d lost; want one that is lost", got.Count, got.Lost)
			}
			if lost := u.Lost(); lost != 1 {
				t.Errorf("%d lost of all processes, want 1", lost)
			}
		})
	}
}

// callsUnderWay are the keys of the calls that the programs remember.
func callsUnderWay(t *testing.T, u *Uprobes) (keys [][]byte) {
	t.Helper()
	calls := u.programs.maps.Calls
	var before any
	for {
		key, err := calls.NextKeyBytes(before)
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			t.Fatal(err)
		}
		if key == nil {
			return keys
		}
		keys = append(keys, key)
		before = key
	}
}
