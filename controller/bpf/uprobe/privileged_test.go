// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package uprobe

import (
	"debug/elf"
	"fmt"
	"os/exec"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// targetProcess is a running testdata/target.c.
type targetProcess struct {
	*targets.Target
	over bool
}

func mustStartTarget(t testing.TB, binary string, arguments ...string) *targetProcess {
	t.Helper()
	p := &targetProcess{Target: targets.StartCommand(t, exec.Command(binary, arguments...))}
	t.Cleanup(func() { p.mustEnd(t) })
	return p
}

// mustEnd lets the target end, which must do so by itself.
func (p *targetProcess) mustEnd(t testing.TB) {
	t.Helper()
	if p.over {
		return
	}
	p.over = true
	p.EndWell(t)
}

// mustCall has the target run "FUNCTION COUNT [ARGUMENT]" to its end.
func (p *targetProcess) mustCall(t testing.TB, line string, args ...any) {
	t.Helper()
	if answer := p.Ask(t, fmt.Sprintf(line, args...)); answer != "done" {
		t.Fatalf("target answers %q", answer)
	}
}

// mustSymbols resolves functions to file offsets.
func mustSymbols(t testing.TB, path string, names ...string) []Symbol {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	all, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	static, _ := file.Symbols() // a stripped library has none
	var found []Symbol
	for _, name := range names {
		for _, symbol := range append(static, all...) {
			if symbol.Name == name && symbol.Value != 0 {
				found = append(found, Symbol{Name: name, Offset: mustOffset(t, file, symbol.Value)})
				break
			}
		}
	}
	if len(found) != len(names) {
		t.Fatalf("found %v of %v in %s", found, names, path)
	}
	return found
}

func mustOffset(t testing.TB, file *elf.File, address uint64) uint64 {
	t.Helper()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_LOAD && address >= segment.Vaddr && address < segment.Vaddr+segment.Filesz {
			return address - segment.Vaddr + segment.Off
		}
	}
	t.Fatalf("no segment holds address %#x", address)
	return 0
}

// mustFindMapped returns the path of a library that the process has mapped.
func mustFindMapped(t testing.TB, pid int, name string) string {
	t.Helper()
	maps := files.Read(t, fmt.Sprintf("/proc/%d/maps", pid))
	for line := range strings.Lines(string(maps)) {
		if fields := strings.Fields(line); len(fields) == 6 && strings.Contains(fields[5], name) {
			return fields[5]
		}
	}
	t.Fatalf("process %d has no %s mapped", pid, name)
	return ""
}

// closePatience is far more than the kernel takes to detach, also on a busy
// machine.
const closePatience = time.Minute

func mustUprobes(t testing.TB, opts Options) *Uprobes {
	t.Helper()
	opts.CloseTimeout = closePatience
	u, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return u
}

func mustAttach(t testing.TB, u *Uprobes, spec Spec) *Attachment {
	t.Helper()
	a, err := u.Attach(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func mustWatch(t testing.TB, u *Uprobes, pid int, point uint16) {
	t.Helper()
	if err := u.Watch(Watch{PID: pid, Point: point}); err != nil {
		t.Fatal(err)
	}
}

// mustAggregate closes the interval and reads what was seen.
func mustAggregate(t testing.TB, u *Uprobes, pid int, point uint16) Aggregate {
	t.Helper()
	if err := u.NextInterval(); err != nil {
		t.Fatal(err)
	}
	var aggregate Aggregate
	if !u.ReadAggregate(pid, point, Closed, &aggregate) {
		t.Fatalf("process %d is not watched at point %d", pid, point)
	}
	var inBuckets uint64
	for _, n := range aggregate.Histogram {
		inBuckets += uint64(n)
	}
	if aggregate.Known && inBuckets != aggregate.Count { // else it delivers records
		t.Errorf("%d hits in the histogram, %d in all", inBuckets, aggregate.Count)
	}
	return aggregate
}

// mustGoSymbol finds a Go function of this program in its file.
func mustGoSymbol(t testing.TB, path string, function any) Symbol {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	address := uint64(reflect.ValueOf(function).Pointer())
	return Symbol{Name: runtime.FuncForPC(uintptr(address)).Name(), Offset: mustOffset(t, file, address)}
}
