// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// An interpreter of the distribution, changed from outside: it says itself what
// it goes by.
func TestPythonSettings(t *testing.T) {
	target := targets.StartScript(t, targets.Python(t), targets.Evaluates)
	a := actuate.New(actuate.Options{Journal: actuatetest.MustJournal(t, t.TempDir()), Kinds: Kinds(mustHidden(t))})
	process := actuatetest.MustProcess(t, target.PID)
	tests := []struct {
		setting        string
		value          int64
		question       string
		before, during string
	}{
		{"python.gc.threshold0", 200000, "gc.get_threshold()[0]", "700", "200000"},
		{"python.gc.threshold1", 20, "gc.get_threshold()[1]", "10", "20"},
		{"python.gc.threshold2", 30, "gc.get_threshold()[2]", "10", "30"},
		{"python.switch_interval_us", 250000, "sys.getswitchinterval()", "0.005", "0.25"},
	}
	for _, tt := range tests {
		t.Run(tt.setting, func(t *testing.T) {
			before := target.Ask(t, tt.question)
			if before != tt.before {
				t.Logf("another default: %s", before)
			}
			r := a.Apply(t.Context(), process, &attunev1.Change{Id: "c", Action: actuatetest.Setting(tt.setting, tt.value)})
			if r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
				t.Fatalf("apply: %v", r)
			}
			if got := target.Ask(t, tt.question); got != tt.during {
				t.Errorf("%s is %s during the change, want %s", tt.question, got, tt.during)
			}
			if undo := a.Undo(t.Context(), "c"); undo.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
				t.Errorf("undo: %v", undo)
			}
			if got := target.Ask(t, tt.question); got != before {
				t.Errorf("%s is %s afterwards, want %s", tt.question, got, before)
			}
		})
	}
}

// Threads of libgomp that spin for ever go to sleep once they are told to, and
// spin again afterwards.
func TestSpinCount(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "../testdata/regions.c", "-fopenmp"), "OMP_NUM_THREADS=2", "OMP_WAIT_POLICY=active")
	a := actuate.New(actuate.Options{Journal: actuatetest.MustJournal(t, t.TempDir()), Kinds: Kinds(mustHidden(t))})
	process := actuatetest.MustProcess(t, target.PID)
	target.Ask(t, "region")
	waitForState(t, target.PID, "R")
	r := a.Apply(t.Context(), process, &attunev1.Change{Id: "c", Action: actuatetest.Setting("gomp.spin_count", 0)})
	if r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || r.GetOldValue().GetInteger() < 1_000_000_000 {
		t.Fatalf("apply: %v", r)
	}
	target.Ask(t, "region") // the wait that is under way goes on as it began
	waitForState(t, target.PID, "S")
	if undo := a.Undo(t.Context(), "c"); undo.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
		t.Errorf("undo: %v", undo)
	}
	target.Ask(t, "region")
	waitForState(t, target.PID, "R")
}

// Without DMLib, libgomp's number of threads is written in place.
func TestThreadsInPlace(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "../testdata/regions.c", "-fopenmp"), "OMP_NUM_THREADS=2")
	a := actuate.New(actuate.Options{Journal: actuatetest.MustJournal(t, t.TempDir()), Kinds: Kinds(mustHidden(t))})
	process := actuatetest.MustProcess(t, target.PID)
	target.Ask(t, "region")
	r := a.Apply(t.Context(), process, &attunev1.Change{Id: "c", Action: actuatetest.Setting("omp.num_threads", 3)})
	if r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || r.GetOldValue().GetInteger() != 2 {
		t.Fatalf("apply: %v", r)
	}
	if got := target.Ask(t, "region"); got != "3" {
		t.Errorf("a region has %s threads, want 3", got)
	}
	if undo := a.Undo(t.Context(), "c"); undo.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
		t.Errorf("undo: %v", undo)
	}
	if got := target.Ask(t, "region"); got != "2" {
		t.Errorf("a region has %s threads afterwards, want 2", got)
	}
}

// TestLibraryOfAPackage: a package of Python carries libgomp along under another name, in
// its file and in what it is linked by.
func TestLibraryOfAPackage(t *testing.T) {
	dir := t.TempDir()
	content := files.Read(t, "/usr/lib/x86_64-linux-gnu/libgomp.so.1")
	const name, linked = "libgomp-a34b3233.so.1.0.0", "libgXmp.so.1"
	content = bytes.ReplaceAll(content, []byte("\x00libgomp.so.1\x00"), []byte("\x00"+linked+"\x00"))
	files.Write(t, filepath.Join(dir, name), content, 0o600)
	for _, link := range []string{linked, "libgomp.so"} {
		if err := os.Symlink(name, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	target := targets.Start(t, targets.Build(t, "../testdata/regions.c", "-fopenmp", "-L"+dir, "-Wl,-rpath,"+dir), "OMP_NUM_THREADS=2")
	a := actuate.New(actuate.Options{Journal: actuatetest.MustJournal(t, t.TempDir()), Kinds: Kinds(mustHidden(t))})
	process := actuatetest.MustProcess(t, target.PID)
	target.Ask(t, "region")
	for setting, value := range map[string]int64{"omp.num_threads": 3, "gomp.spin_count": 5} {
		r := a.Apply(t.Context(), process, &attunev1.Change{Id: setting, Action: actuatetest.Setting(setting, value)})
		if r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || !strings.Contains(r.GetWay(), string(access.WayMemory)) {
			t.Errorf("%s: %v", setting, r)
		}
	}
	if got := target.Ask(t, "region"); got != "3" {
		t.Errorf("a region has %s threads, want 3", got)
	}
}

// waitForState waits until the thread that is not the first one is in a state.
func waitForState(t *testing.T, pid int, want string) {
	t.Helper()
	var state string
	for deadline := time.Now().Add(patience.Limit); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			stat, err := os.ReadFile(path)
			if err != nil || strings.Contains(path, fmt.Sprintf("/task/%d/", pid)) {
				continue
			}
			letter, err := procid.ParseState(stat)
			if err != nil {
				t.Fatal(err)
			}
			if state = string(letter); state == want {
				return
			}
		}
	}
	t.Fatalf("the second thread is in state %q, want %q", state, want)
}
