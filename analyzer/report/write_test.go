// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/golden"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWriteText(t *testing.T) {
	silent := &Report{
		Command: []string{"true"}, WallSeconds: 0.012, Finished: true, Exit: Exit{Code: ptr(0)},
		Processes: []Process{{PID: 1, Instrumented: true}},
		Overhead:  Overhead{CPUSeconds: 0.02, ControllerCPUSeconds: 0.02, MemoryPeakBytes: 25e6},
	}
	build := &Report{Command: []string{"make"}, WallSeconds: 3, Finished: true, Exit: Exit{Code: ptr(0)}}
	for pid, exe := range []string{"/bin/sh", "/usr/bin/cc1", "/bin/sh", "", "/usr/bin/as", "/usr/bin/ld"} {
		build.Processes = append(build.Processes, Process{PID: pid, Exe: exe, NotInstrumented: ShortLived})
	}
	build.Processes = append(build.Processes, Process{PID: 7, NotInstrumented: "static binary"})
	ranks := example()
	ranks.Changes = ranks.Changes[:1]
	for pid := range 3 {
		c := ranks.Changes[0]
		c.Process = 5000 + pid
		ranks.Changes = append(ranks.Changes, c)
	}
	tests := []struct {
		name string
		r    *Report
		opts TextOptions
	}{
		{name: "silent", r: silent},
		{name: "left", r: leaving(), opts: TextOptions{Outside: true}},
		{name: "full", r: example()},
		{name: "build", r: build},
		{name: "measured", r: measured()},
		{name: "ranks", r: ranks, opts: TextOptions{Width: 80}},
		{name: "took", r: took(), opts: TextOptions{Width: 100}},
		{name: "colour", r: example(), opts: TextOptions{Color: true, Width: 100}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := tt.r.WriteText(&out, tt.opts); err != nil {
				t.Fatal(err)
			}
			golden.File(t, filepath.Join("testdata", tt.name+".txt"), out.Bytes())
			for _, line := range strings.Split(out.String(), "\n") {
				if n := len([]rune(line)); tt.opts.Width > 0 && !tt.opts.Color && n > tt.opts.Width {
					t.Errorf("%d columns, want at most %d: %s", n, tt.opts.Width, line)
				}
			}
		})
	}
	if n := bytes.Count(files.Read(t, "testdata/silent.txt"), []byte("\n")); n != 2 {
		t.Errorf("a silent program gets %d lines, want 2", n)
	}
}

// People are told of a tunlet that failed, and not of one that has not had the time to answer.
func TestTunletThatNeverAnswered(t *testing.T) {
	for state, want := range map[string]string{"starting": "", "restarting": "slow restarting: no answer"} {
		if got := (Tunlet{Name: "slow", State: state, Reason: "no answer"}).trouble(); got != want {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
}

// leaving is a report of a program that has started a static one, and left a service behind.
func leaving() *Report {
	static := "dmlib: statically linked: DMLib cannot be preloaded"
	return &Report{
		Command: []string{"start"}, WallSeconds: 0.5, Finished: true, Exit: Exit{Code: ptr(0)},
		Processes: []Process{
			{PID: 1, Exe: "/bin/sh", Instrumented: true, ReplacedByExec: true, Mechanisms: []string{"dmlib"}},
			{PID: 1, Exe: "/bin/start", Instrumented: true, Mechanisms: []string{"dmlib"}},
			{PID: 2, Exe: "/bin/static", Instrumented: true, Mechanisms: []string{"uprobe", "vm_write"}, NotInstrumented: static},
			{PID: 3, Exe: "/bin/service", NotInstrumented: ShortLived},
		},
		Account: &account.Account{WallSeconds: 0.5, Tree: []account.Process{{PID: 1, Name: "start"}, {PID: 2, Name: "static"}, {PID: 3, Name: "service", Left: true}}},
	}
}

// took is a report of a job of a batch system in which nothing was to change.
func took() *Report {
	r := &Report{Command: []string{"solver"}, WallSeconds: 100, Finished: true, Exit: Exit{Code: ptr(0)}}
	asked := "asked of slurm"
	zero := func() *float64 { return ptr(0.0) }
	r.Account = &account.Account{
		WallSeconds: 100, CPUSeconds: ptr(60.0), CoresAverage: ptr(0.6), CoresPeak: ptr(1.02), Exit: account.Exit{Code: ptr(0)},
		Memory:    account.Memory{Resident: ptr(uint64(2e9))},
		Available: account.Available{System: "slurm", Cores: ptr(8.0), Memory: ptr(uint64(16e9)), WallSeconds: ptr(86400.0)},
		Time: account.Time{
			Computing: ptr(50.0), Kernel: ptr(10.0), CPU: ptr(1.0), Disk: ptr(38.0), Network: zero(), Pipes: zero(), Events: zero(), Locks: zero(), Sleep: zero(), Other: ptr(1.0),
		},
		Accuracy: map[string]account.Accuracy{"cores_peak": account.Sampled},
		Sources:  map[string]string{"available.cores": asked, "available.memory_bytes": asked, "available.wall_seconds": asked},
		Tree: []account.Process{
			{PID: 7, Name: "sh", CPUSeconds: ptr(0.1), Memory: account.Memory{Resident: ptr(uint64(1e6))}},
			{PID: 8, Name: "sol\x1b[2J\u202ever", CPUSeconds: ptr(59.9), Memory: account.Memory{Resident: ptr(uint64(2e9))}},
		},
		Processes: account.Processes{Total: ptr(uint64(2))},
	}
	return r
}

func TestWriteJSON(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "target"), link); err != nil {
		t.Fatal(err)
	}
	files.Write(t, filepath.Join(dir, "target"), "old", 0o600)
	socket := filepath.Join(dir, "socket")
	lis, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	tests := []struct {
		name, path, wantErr string
	}{
		{name: "new file", path: filepath.Join(dir, "report.json")},
		{name: "again", path: filepath.Join(dir, "report.json")},
		{name: "through a link", path: link},
		{name: "a directory", path: dir, wantErr: "it is no regular file"},
		{name: "no such directory", path: filepath.Join(dir, "no", "report.json"), wantErr: "no such file or directory"},
		{name: "a socket", path: socket, wantErr: "it is no regular file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := example().WriteJSON(tt.path)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) || !strings.Contains(err.Error(), "--report") {
					t.Fatalf("error %v, want one with %q and the remedy", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := validate(t, files.Read(t, tt.path)); err != nil {
				t.Error(err)
			}
			var back Report
			if err := json.Unmarshal(files.Read(t, tt.path), &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(example(), &back, cmp.Comparer(func(a, b Value) bool { return a.String() == b.String() })); diff != "" {
				t.Errorf("read back (-want +got):\n%s", diff)
			}
		})
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*.tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files left: %v %v", left, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v %v", info, err)
	}
}

func TestTextObeysNoProgram(t *testing.T) {
	r := &Report{
		Command:   []string{"/tmp/\x1b]0;title\a"},
		Processes: []Process{{PID: 1, Exe: "/tmp/\x1b[2J\xff", NotInstrumented: "no\u009b31m"}},
		Remarks:   []Remark{{From: "malloc", Text: "in \x1b[1A\u202e"}},
	}
	var out bytes.Buffer
	if err := r.WriteText(&out, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\a\u009b\u202e") || !strings.Contains(out.String(), "(?[2J?): no?31m") {
		t.Errorf("text: %q", out.String())
	}
}

func TestEncodeJSONFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	if err := example().EncodeJSON(full); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v, want %v", err, syscall.ENOSPC)
	}
}

// writer is a test writer whose Write can fail or block.
type writer struct {
	bytes.Buffer
	fail  error
	block chan struct{}
}

func (w *writer) Write(p []byte) (int, error) {
	if w.block != nil {
		<-w.block
	}
	if w.fail != nil {
		return 0, w.fail
	}
	return w.Buffer.Write(p)
}

func TestTimeline(t *testing.T) {
	w := &writer{}
	tl := NewTimeline(w)
	tl.Write(Entry{Kind: "kept", Seconds: 0.5, Changes: []EntryChange{{ID: "c1", New: ValueOf(integer(7))}}})
	tl.Write(Entry{Kind: "remark", Text: "hello"})
	if dropped, err := tl.Close(time.Minute); dropped != 0 || err != nil {
		t.Fatal(dropped, err)
	}
	tl.Write(Entry{Kind: "late"})
	var kinds []string
	for line := range strings.Lines(w.String()) {
		var e Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Kind)
	}
	if diff := cmp.Diff([]string{"kept", "remark"}, kinds); diff != "" {
		t.Error(diff)
	}
}

func TestTimelineFullDisk(t *testing.T) {
	full := errors.New("no space left on device")
	tl := NewTimeline(&writer{fail: full})
	for range 3 {
		tl.Write(Entry{Kind: "kept"})
	}
	if dropped, err := tl.Close(time.Minute); dropped != 3 || !errors.Is(err, full) {
		t.Errorf("dropped %d, error %v; want 3, %v", dropped, err, full)
	}
}

func TestTimelineSlowReader(t *testing.T) {
	w := &writer{block: make(chan struct{})}
	tl := NewTimeline(w)
	for range timelineQueue + 100 {
		tl.Write(Entry{Kind: "kept"})
	}
	if dropped, _ := tl.Close(time.Millisecond); dropped < timelineQueue {
		t.Errorf("dropped %d, want at least %d", dropped, timelineQueue)
	}
	close(w.block)
	<-tl.done
}

func TestTimelineWithoutWriter(t *testing.T) {
	var none io.Writer
	tl := NewTimeline(none)
	tl.Write(Entry{Kind: "kept"})
	if dropped, err := tl.Close(time.Minute); dropped != 0 || err != nil {
		t.Error(dropped, err)
	}
}

// TestSeveralErrorsAreOneText: errors that were joined are told apart.
func TestSeveralErrorsAreOneText(t *testing.T) {
	if got := wrap("no probes in a\nno probes in b\n", 0); len(got) != 1 || got[0] != "no probes in a; no probes in b" {
		t.Errorf("got %q", got)
	}
}

// The name of a server that has written a title into its arguments is before the colon.
func TestCommandName(t *testing.T) {
	for want, first := range map[string]string{
		"nginx": "nginx: master process nginx -c /etc/n.conf", "postgres": "postgres: checkpointer", "a b": "/x/a b",
	} {
		if got := commandName([]string{first}); got != want {
			t.Errorf("%q is %q, want %q", first, got, want)
		}
	}
}

// What a tunlet says of several processes is a line, and says of how many.
func TestEqualNotes(t *testing.T) {
	r := &Report{Remarks: []Remark{{From: "malloc", Process: 1, Text: "why"}, {From: "gc", Text: "why"}, {From: "malloc", Process: 2, Text: "why"}}}
	var text strings.Builder
	if err := r.WriteText(&text, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := text.String(); strings.Count(got, "malloc: why") != 1 || !strings.Contains(got, "malloc: why (2 times)") || !strings.Contains(got, "gc: why\n") {
		t.Error(got)
	}
}
