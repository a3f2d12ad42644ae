// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"

	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/internal/objfile"
)

// uprobeLikely asks for the privilege only.
func uprobeLikely(_ context.Context, n *node) finding {
	if !bpf.MayLoad(n.held) {
		return unavailable(notPermitted, remedyBPF)
	}
	if n.isConfidential() {
		return unavailable(confidential, remedyConfidential)
	}
	if !n.held.Has(unix.CAP_SYS_ADMIN) && errors.Is(features.HaveBPFLinkUprobeMulti(), bpf.ErrUnsupported) {
		return unavailable(notPermitted, "run as root, or with CAP_SYS_ADMIN: before Linux 6.6 the narrower capabilities are not enough")
	}
	if _, err := os.Stat(n.path("/sys/bus/event_source/devices/uprobe")); err != nil {
		return unavailable("this kernel has no uprobes", "needs a kernel with CONFIG_UPROBE_EVENTS")
	}
	return available("not tried")
}

// probed is called under a uprobe.
//
//go:noinline
func probed(value int) int { return value + 1 }

const probedCalls = 8

// uprobeTried probes a function of this very program, calls it and counts.
func uprobeTried(_ context.Context, _ *node) finding {
	uprobes, err := uprobe.New(uprobe.Options{MaxWatches: 1, MaxCalls: 64, RingBytes: uint32(os.Getpagesize())})
	if err != nil {
		return refused(err, remedyBPF, kernelFrom("5.15"))
	}
	mechanism, counted, err := countOwnCalls(uprobes)
	// Probes that the kernel is still taking out are no failure.
	if closing := uprobes.Close(); closing != nil && !errors.Is(closing, uprobe.ErrDetaching) {
		err = errors.Join(err, closing)
	}
	switch {
	case err != nil:
		return refused(err, remedyBPF, kernelFrom("5.15"))
	case counted != probedCalls:
		return unavailable(fmt.Sprintf("a probe counted %d of %d calls", counted, probedCalls), "")
	}
	return available("tried, by " + mechanism)
}

func countOwnCalls(uprobes *uprobe.Uprobes) (mechanism string, counted uint64, err error) {
	const point = 1
	offset, err := objfile.OwnOffset(reflect.ValueOf(probed).Pointer())
	if err != nil {
		return "", 0, err
	}
	attachment, err := uprobes.Attach(uprobe.Spec{
		Path: "/proc/self/exe", Symbols: []uprobe.Symbol{{Name: "probed", Offset: offset}}, Point: point,
	})
	if err != nil {
		return "", 0, err
	}
	defer attachment.Close()
	if err := uprobes.Watch(uprobe.Watch{PID: os.Getpid(), Point: point}); err != nil {
		return "", 0, err
	}
	calls := 0
	for calls < probedCalls {
		calls = probed(calls)
	}
	var seen uprobe.Aggregate
	uprobes.ReadAggregate(os.Getpid(), point, uprobe.Closed, &seen)
	mechanism, _ = attachment.Mechanism()
	return mechanism, seen.Count, nil
}
