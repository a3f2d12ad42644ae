// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package uprobe

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// mustTranslator builds the target as if it were a tool of Valgrind's.
func mustTranslator(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "valgrind")
	tool := filepath.Join(dir, "memcheck-amd64-linux")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Rename(mustCompile(t, "target.c"), tool)); err != nil {
		t.Fatal(err)
	}
	return tool
}

// broken says whether the kernel's breakpoint stands in a target's starts_with_push.
func (p *targetProcess) broken(t *testing.T) bool {
	t.Helper()
	found, err := objfile.Resolve(p.PID, "*", "starts_with_push", objfile.Function)
	if err != nil {
		t.Fatal(err)
	}
	process, err := proc.Open(p.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer process.Close()
	code := make([]byte, 1)
	if err := process.Read(found.Address, code); err != nil {
		t.Fatal(err)
	}
	return code[0] == 0xcc
}

// TestNarrow: breakpoints go out of the processes that nobody watches when a program
// starts that they would end, and stay out; those that are watched are counted on.
func TestNarrow(t *testing.T) {
	for mechanism, opts := range mechanisms() {
		t.Run(mechanism, func(t *testing.T) {
			binary, tool := mustCompile(t, "target.c"), mustTranslator(t)
			u := mustUprobes(t, opts)
			first, second, third := mustStartTarget(t, binary), mustStartTarget(t, binary), mustStartTarget(t, binary)
			spec := Spec{Path: binary, Symbols: mustSymbols(t, binary, "starts_with_push"), Point: 3, PID: first.PID}
			one := mustAttach(t, u, spec)
			mustWatch(t, u, first.PID, 3)
			first.mustCall(t, "push 100")
			if !first.broken(t) || !second.broken(t) {
				t.Error("a process that maps the file has no breakpoint")
			}
			translated := mustStartTarget(t, tool)
			patience.Until(t, "the breakpoint is out of the others", func() bool { return !second.broken(t) })
			first.mustCall(t, "push 10")
			spec.PID = second.PID
			two := mustAttach(t, u, spec)
			mustWatch(t, u, second.PID, 3)
			second.mustCall(t, "push 1000")
			if first, second := mustAggregate(t, u, first.PID, 3), mustAggregate(t, u, second.PID, 3); first.Count != 110 || second.Count != 1000 {
				t.Errorf("counted %d and %d", first.Count, second.Count)
			}
			if !first.broken(t) || !second.broken(t) || third.broken(t) {
				t.Error("a breakpoint is where nobody wants it, or not where it is wanted")
			}
			translated.mustEnd(t)
			third.mustEnd(t)
			spec.PID = third.PID
			if _, err := u.Attach(spec); !errors.Is(err, procid.ErrGone) {
				t.Errorf("for a process that has ended: %v", err)
			}
			if refused := two.Symbols()[0].Refused; refused != "" {
				t.Errorf("for all others it is refused then: %s", refused)
			}
			one.Close()
			patience.Until(t, "the breakpoint is out of the first", func() bool { return !first.broken(t) })
			second.mustCall(t, "push 1")
			if got := mustAggregate(t, u, second.PID, 3); got.Count != 1001 {
				t.Errorf("counted %d", got.Count)
			}
			two.Close()
		})
	}
}

// TestNarrowFromTheBeginning: a translated program is not ended by probes that come later,
// and cannot be probed itself.
func TestNarrowFromTheBeginning(t *testing.T) {
	tool := mustTranslator(t)
	u := mustUprobes(t, Options{})
	translated, other := mustStartTarget(t, tool), mustStartTarget(t, tool)
	spec := Spec{Path: tool, Symbols: mustSymbols(t, tool, "starts_with_push"), Point: 1, PID: os.Getpid()}
	mustAttach(t, u, spec)
	if translated.broken(t) || other.broken(t) {
		t.Error("a breakpoint is in a translated program")
	}
	spec.PID = translated.PID
	for _, point := range []uint16{1, 2} { // one that is attached already, and another one
		spec.Point = point
		var unsupported *bpf.UnsupportedError
		if a, err := u.Attach(spec); err == nil {
			a.Close()
			t.Errorf("point %d: a translated program is probed", point)
		} else if !errors.As(err, &unsupported) {
			t.Errorf("point %d: %v", point, err)
		}
	}
	if translated.broken(t) {
		t.Error("a breakpoint is in a translated program")
	}
}

// TestNarrowOfWhoTurnsTranslated: what is in a process that a point is held for goes when
// the process executes a translator, however the point stands.
func TestNarrowOfWhoTurnsTranslated(t *testing.T) {
	tool := mustTranslator(t)
	for name, narrow := range map[string]bool{"stands everywhere": false, "is narrow": true} {
		t.Run(name, func(t *testing.T) {
			u := mustUprobes(t, Options{})
			if narrow {
				mustStartTarget(t, tool)
			}
			turning := mustStartTarget(t, "/bin/sh", "-c", "echo ready; read line; exec "+tool)
			spec := Spec{Path: tool, Symbols: mustSymbols(t, tool, "starts_with_push"), Point: 1, PID: turning.PID}
			mustAttach(t, u, spec)
			if answer := turning.Ask(t, ""); answer != "ready" {
				t.Fatalf("it answers %q", answer)
			}
			patience.Until(t, "the breakpoint is out of the translated program", func() bool { return !turning.broken(t) })
			if _, err := u.Attach(spec); err == nil {
				t.Error("a program that is translated by now is probed")
			}
		})
	}
}

// TestSwitchesCostNothing: to be told of translators takes no program at each switch of
// each CPU, of which there would be one for each controller of a node.
func TestSwitchesCostNothing(t *testing.T) {
	binary := mustCompile(t, "target.c")
	u := mustUprobes(t, Options{})
	target := mustStartTarget(t, binary)
	mustAttach(t, u, Spec{Path: binary, Symbols: mustSymbols(t, binary, "starts_with_push"), Point: 1, PID: target.PID})
	patience.Until(t, "word of translators, the last to be attached", func() bool { return attachedTo(t, "sched_process_fork") })
	if attachedTo(t, "sched_switch") {
		t.Error("a program of this process is at sched_switch")
	}
}

// attachedTo says whether this process has a program at a tracepoint.
func attachedTo(t *testing.T, tracepoint string) bool {
	t.Helper()
	descriptors, err := os.ReadDir("/proc/self/fdinfo")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(descriptors, func(d os.DirEntry) bool {
		info, err := os.ReadFile("/proc/self/fdinfo/" + d.Name())
		return err == nil && strings.Contains(string(info), "tp_name:\t"+tracepoint+"\n")
	})
}

func TestTranslatorAt(t *testing.T) {
	for exe, want := range map[string]string{
		"/usr/libexec/valgrind/memcheck-amd64-linux": "Valgrind", "/usr/bin/valgrind": "", "/usr/bin/qemu-x86_64": "QEMU",
		"/usr/bin/qemu-aarch64_be-static": "QEMU", "/usr/bin/qemu-mipsn32el": "QEMU", "/usr/bin/qemu-system-x86_64": "", "/usr/bin/qemu-img": "",
		"/usr/libexec/valgrind/getoff-amd64-linux": "Valgrind", "": "",
	} {
		if got := translatorAt(exe); got != want {
			t.Errorf("%s: %q, want %q", exe, got, want)
		}
	}
}
