// SPDX-License-Identifier: Apache-2.0

package track_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// executed is the exec of a program that the kernel tells all about.
func executed(t *testing.T, pid int, at uint64, startedAs string, arguments ...string) track.Event {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat("/bin/true", &st); err != nil {
		t.Fatal(err)
	}
	program := &procevent.Program{Device: uint64(st.Dev), Inode: st.Ino, StartedAs: startedAs}
	for _, argument := range arguments {
		program.Arguments = append(append(program.Arguments, argument...), 0)
	}
	return track.Event{Kind: track.Exec, PID: pid, Member: true, Time: at, Program: program, Command: "short"}
}

// TestShortLived: of a process that has ended before anybody looked, executable,
// arguments, times and status are what the kernel told.
func TestShortLived(t *testing.T) {
	s := begin(t, "true")
	where, err := filepath.EvalSymlinks("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	began := now() - uint64(time.Second)
	status := int32(3 << 8)
	for i, tt := range []struct {
		startedAs string
		arguments []string
		want      string
	}{
		{"/bin/true", []string{"true", "-x", ""}, where},
		{"true", []string{"true"}, ""}, // in a directory that nobody knows
		{"/usr/bin/script", []string{"/bin/true", "/usr/bin/script"}, where},
	} {
		pid, at := goneA+i, began+uint64(i)*1000
		s.tell(t,
			track.Event{Kind: track.Fork, PID: pid, Parent: s.job.pid(), Member: true, Time: at},
			executed(t, pid, at+100, tt.startedAs, tt.arguments...),
			track.Event{Kind: track.Exit, PID: pid, Member: true, Last: true, Time: at + 200, Status: status, HasStatus: true},
		)
		handles := s.images(pid)
		if len(handles) != 1 {
			t.Fatalf("%s: %d images, want one", tt.startedAs, len(handles))
		}
		s.r.mu.Lock()
		p, e := s.r.latest[handles[0]], s.r.ended[handles[0]]
		s.r.mu.Unlock()
		if p.Executable != tt.want || !slices.Equal(p.CommandLine, tt.arguments) || p.ParentPid != int32(s.job.pid()) {
			t.Errorf("%s: %v, want %s %q", tt.startedAs, p, tt.want, tt.arguments)
		}
		if took := e.GetEndedUnixNano() - p.GetSeenUnixNano(); took < 0 || took > int64(time.Millisecond) || e.GetWaitStatus() != status {
			t.Errorf("%s: %v after %d ns, want 100 ns between exec and end", tt.startedAs, e, took)
		}
		if age := time.Since(time.Unix(0, p.GetSeenUnixNano())); age < time.Second/2 {
			t.Errorf("%s: seen %v ago, want a second", tt.startedAs, age)
		}
	}
}

// TestShortImages: a process that executes one program after the other is told of
// as often, and a child inherits what its parent is by then.
func TestShortImages(t *testing.T) {
	s := begin(t, "true")
	at := now() - uint64(time.Second)
	s.tell(t,
		track.Event{Kind: track.Fork, PID: goneA, Parent: s.job.pid(), Member: true, Time: at},
		executed(t, goneA, at+100, "/bin/true", "first"),
		executed(t, goneA, at+200, "/bin/true", "second"),
		track.Event{Kind: track.Fork, PID: goneB, Parent: goneA, Member: true, Time: at + 300},
		track.Event{Kind: track.Exit, PID: goneB, Member: true, Last: true, Time: at + 400},
		track.Event{Kind: track.Exit, PID: goneA, Member: true, Last: true, Time: at + 500},
	)
	var words []string
	for _, handle := range append(s.images(goneA), s.images(goneB)...) {
		s.r.mu.Lock()
		p, e := s.r.latest[handle], s.r.ended[handle]
		s.r.mu.Unlock()
		words = append(words, p.CommandLine...)
		if e == nil {
			t.Errorf("%v has not ended", p)
		}
	}
	if want := []string{"first", "second", "second"}; !slices.Equal(words, want) {
		t.Errorf("images %q, want %q", words, want)
	}
}

// TestGrownUp: an image that lives on is described by what it is, and one that is
// another by then by what the kernel told.
func TestGrownUp(t *testing.T) {
	s := begin(t, "exec sleep 100")
	s.job.run(t)
	patience.Until(t, "the shell to be sleep", func() bool {
		data := files.Read(t, "/proc/"+itoa(s.job.pid())+"/comm")
		return string(data) == "sleep\n"
	})
	stat, err := procid.ReadStat(s.job.pid())
	if err != nil {
		t.Fatal(err)
	}
	e := executed(t, s.job.pid(), now()+uint64(time.Minute), "/bin/true", "between")
	e.StartTicks = stat.StartTicks
	s.tell(t, e)
	s.r.awaitImage("sleep", "100")
	var words []string
	handles := s.images(s.job.pid())
	s.r.mu.Lock()
	for _, handle := range handles {
		words = append(words, base(s.r.latest[handle].CommandLine[0]))
	}
	s.r.mu.Unlock()
	if want := []string{"sh", "between", "sleep"}; !slices.Equal(words, want) {
		t.Errorf("images %q, want %q", words, want)
	}
	for _, handle := range handles[:2] {
		if e := s.r.awaitEnd(handle); !e.GetReplacedByExec() {
			t.Errorf("end %v", e)
		}
	}
}
