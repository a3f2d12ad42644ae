// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/footprint"
	"github.com/attune-hpc/attune/internal/readers"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// peakSeen tells a command, by a file, when a look has seen its bytes.
type peakSeen struct {
	bytes uint64
	told  string
}

func (p *peakSeen) watch(row account.Row) {
	if row.Disk != nil && *row.Disk >= p.bytes {
		_ = os.WriteFile(p.told, []byte("1"), 0o600)
	}
}

// TestDisk: the peak is of what there was at one time, by blocks, with what was there
// before, and the helper that measures is none of the command's processes.
func TestDisk(t *testing.T) {
	dir := t.TempDir()
	const script = `cd "$0" && head -c 3000000 /dev/zero >big && mkdir below && touch below/a below/b
		until [ -s "$1" ]; do sleep 0.01; done; rm big; touch below/c; ln below/c d`
	series := &peakSeen{bytes: 3_000_000, told: t.TempDir() + "/told"}
	options := Options{WithoutKernel: true, NoGroup: true, Directories: []string{dir}, helperPatience: patience.Limit, Every: MinEvery, Watch: series.watch}
	a, exit := mustRun(t, options, "sh", "-c", script, dir, series.told)
	if exit.Code != 0 {
		t.Fatalf("ended with %+v", exit)
	}
	if a.Disk.Bytes == nil || *a.Disk.Bytes < 3_000_000 || *a.Disk.Bytes > 3_500_000 || *a.Disk.Files < 3 || *a.Disk.Files > 4 {
		t.Errorf("%+v, missing %q", a.Disk, a.Missing[diskBytes])
	}
	if a.Accuracy[diskBytes] != account.Sampled || a.PeakTimes[diskBytes] <= 0 || a.PeakTimes[diskBytes] > a.WallSeconds {
		t.Errorf("%s at %g s", a.Accuracy[diskBytes], a.PeakTimes[diskBytes])
	}
	for _, p := range a.Tree {
		if p.Name == "exe" || p.Name == readers.Name {
			t.Errorf("the helper is among the processes: %+v", p)
		}
	}
}

// TestDiskOfShort: what is there at the end is measured, however short the command was, where only
// the user may look.
func TestDiskOfShort(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	a, _ := mustRun(t, Options{WithoutKernel: true, NoGroup: true, Directories: []string{dir}, helperPatience: patience.Limit}, "sh", "-c", `echo 1 >"$0/a"`, dir)
	if a.Disk.Files == nil || *a.Disk.Files != 1 {
		t.Errorf("%+v, missing %q", a.Disk, a.Missing[diskFiles])
	}
}

// gatedHelper makes this program a helper whose walks of a length, the next argument, end when
// somebody has opened a FIFO, the one after it, for writing and has closed it again.
const gatedHelper = "gated-helper"

func gated(most time.Duration, gate string) []string {
	return []string{"/proc/self/exe", gatedHelper, most.String(), gate}
}

func gatedMeasure(most, gate string) readers.Served {
	return readers.NewOperation("measure", func(ctx context.Context, q footprint.Question) (footprint.Footprint, error) {
		if q.Most.String() == most {
			if _, err := os.ReadFile(gate); err != nil {
				return footprint.Footprint{}, err
			}
		}
		return footprint.Measure(ctx, q)
	})
}

// TestLimitsDuringTheLastWalk: a command that has ended within its limits keeps its code, however long
// its directories are walked through afterwards.
func TestLimitsDuringTheLastWalk(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	if err := unix.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	const most = 10 // seconds, which pass only where limits are still compared
	exceeded := make(chan struct{})
	seen := sync.OnceFunc(func() { close(exceeded) })
	a, child := mustBegin(t, Options{
		WithoutKernel: true, NoGroup: true, Limits: []Limit{{Field: "wall_seconds", Max: most}},
		Directories: []string{t.TempDir()}, helper: gated(lastWalk, gate), helperPatience: patience.Limit,
		Watch: func(row account.Row) {
			if row.Seconds > most {
				seen()
			}
		},
	}, "true")
	exit := child.Wait()
	ended := make(chan *account.Account, 1)
	go func() { ended <- a.End(t.Context(), []string{"true"}, exit) }()
	walking, err := os.OpenFile(gate, os.O_WRONLY, 0) // waits until the last walk has begun
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-a.stopped:
	case <-exceeded:
	}
	if err := walking.Close(); err != nil {
		t.Error(err)
	}
	record := patience.Receive(t, "account", ended)
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if record.Exit.Type != account.ExitNormal || *record.Exit.Code != 0 || len(record.Exit.Limits) > 0 || record.Missing[diskBytes] != "" {
		t.Errorf("the command ended with %+v, the account says %+v, missing %q", exit, record.Exit, record.Missing)
	}
}

// TestEndWithinAWalk: a walk that the command's end cuts off is followed by the last one, which says
// what there is.
func TestEndWithinAWalk(t *testing.T) {
	dir := t.TempDir()
	gate, end := filepath.Join(dir, "gate"), filepath.Join(dir, "end")
	for _, fifo := range []string{gate, end} {
		if err := unix.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, child := mustBegin(t, Options{
		WithoutKernel: true, NoGroup: true, Directories: []string{dir}, helper: gated(longestWalk, gate), helperPatience: patience.Limit,
	}, "cat", end)
	walking, err := os.OpenFile(gate, os.O_WRONLY, 0) // waits until the walk has begun
	if err != nil {
		t.Fatal(err)
	}
	defer walking.Close()
	files.Write(t, end, "", 0)
	record := a.End(t.Context(), []string{"cat"}, child.Wait())
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if record.Disk.Files == nil || *record.Disk.Files != 2 || record.Missing[diskFiles] != "" {
		t.Errorf("%+v, missing %q", record.Disk, record.Missing)
	}
}

// TestDiskThatDoesNotAnswer is refused before the command starts.
func TestDiskThatDoesNotAnswer(t *testing.T) {
	for _, test := range []struct {
		name, dir, want string
		helper          []string
	}{
		{"no such directory", "/nowhere/at/all", "no such file", nil},
		{"silent", t.TempDir(), "does not answer", []string{"sleep", "1000"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, err := New(Options{WithoutKernel: true, NoGroup: true, Directories: []string{test.dir}, helper: test.helper, helperPatience: patienceOf(test.helper)})
			if err == nil {
				err = a.Close()
				t.Fatalf("not refused (%v)", err)
			}
			if !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.dir) {
				t.Errorf("error %q lacks %q", err, test.want)
			}
		})
	}
}

// patienceOf is short for what never answers.
func patienceOf(helper []string) time.Duration {
	if helper == nil {
		return patience.Limit
	}
	return 50 * time.Millisecond
}
