// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package uprobe

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/files"
)

// mustExpect attaches a point to a function of the program, and expects so many
// processes of a user that execute it.
func mustExpect(t *testing.T, u *Uprobes, binary string, uid uint32, ahead int) Expectation {
	t.Helper()
	mustAttach(t, u, Spec{Path: binary, Symbols: mustSymbols(t, binary, "starts_with_push"), Point: 3})
	var st unix.Stat_t
	if err := unix.Stat(binary, &st); err != nil {
		t.Fatal(err)
	}
	e := Expectation{Device: st.Dev, Inode: st.Ino, UID: uid, Point: 3}
	if err := u.Expect(e, ahead); err != nil {
		t.Fatal(err)
	}
	return e
}

// A process is watched from its first hit on, although it is named later.
func TestExpectedProcess(t *testing.T) {
	binary := mustCompile(t, "target.c")
	u := mustUprobes(t, Options{})
	mustExpect(t, u, binary, uint32(os.Getuid()), 2)
	for i := range 5 { // each takes a watch that is replaced
		target := mustStartTarget(t, binary)
		target.mustCall(t, "push 10 5")
		mustWatch(t, u, target.PID, 3)
		target.mustCall(t, "push 7 5")
		if got := mustAggregate(t, u, target.PID, 3); got.Count != 17 || got.Sum != 17*5 {
			t.Errorf("process %d: %d hits with sum %d, want 17 and 85", i, got.Count, got.Sum)
		}
	}
}

// Several at a time, and one more than were expected, which is counted as soon
// as it is watched.
func TestMoreThanExpected(t *testing.T) {
	binary := mustCompile(t, "target.c")
	u := mustUprobes(t, Options{})
	mustExpect(t, u, binary, uint32(os.Getuid()), 2)
	want := []uint64{14, 14, 7}
	var targets []*targetProcess
	for range want {
		target := mustStartTarget(t, binary)
		target.mustCall(t, "push 7 1")
		targets = append(targets, target)
	}
	for i, target := range targets {
		mustWatch(t, u, target.PID, 3)
		target.mustCall(t, "push 7 1")
		if got := mustAggregate(t, u, target.PID, 3); got.Count != want[i] {
			t.Errorf("process %d: %d hits, want %d", i, got.Count, want[i])
		}
	}
}

// Another user's process, and another program that maps the file, get nothing.
func TestOthersAreNotExpected(t *testing.T) {
	binary := mustCompile(t, "target.c")
	data := files.Read(t, binary)
	copied := filepath.Join(t.TempDir(), "copy")
	files.Write(t, copied, data, 0o755)
	tests := []struct {
		name, program string
		uid           uint32
	}{
		{"another user", binary, uint32(os.Getuid()) + 1},
		{"another program", copied, uint32(os.Getuid())},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			u := mustUprobes(t, Options{})
			e := mustExpect(t, u, binary, test.uid, 2)
			if test.program != binary {
				mustAttach(t, u, Spec{Path: copied, Symbols: mustSymbols(t, copied, "starts_with_push"), Point: 3})
			}
			target := mustStartTarget(t, test.program)
			target.mustCall(t, "push 10 5")
			mustWatch(t, u, target.PID, 3)
			if got := mustAggregate(t, u, target.PID, 3); got.Count != 0 {
				t.Errorf("%d hits before it was watched, expected %+v", got.Count, e)
			}
		})
	}
}

// What processes claimed that nobody asked for serves others when they have
// ended.
func TestExpectationsAreReused(t *testing.T) {
	binary := mustCompile(t, "target.c")
	u := mustUprobes(t, Options{MaxWatches: 2})
	e := mustExpect(t, u, binary, uint32(os.Getuid()), 2)
	for range 3 {
		for range 2 {
			target := mustStartTarget(t, binary)
			target.mustCall(t, "push 10 5")
			target.mustEnd(t)
		}
		if err := u.Expect(e, 2); err != nil {
			t.Fatal(err)
		}
	}
	target := mustStartTarget(t, binary)
	target.mustCall(t, "push 10 5")
	mustWatch(t, u, target.PID, 3)
	if got := mustAggregate(t, u, target.PID, 3); got.Count != 10 {
		t.Errorf("%d hits, want 10", got.Count)
	}
}
