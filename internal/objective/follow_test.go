// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/follow"
)

// mustAppend appends to a file, which it makes.
func mustAppend(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// following returns a follower of a file, and what it finds next.
func following(t *testing.T, path, pattern string) (f *follower, find func() []float64) {
	t.Helper()
	file, err := follow.Path(path)
	if err != nil {
		t.Fatal(err)
	}
	f = &follower{File: file, pattern: regexp.MustCompile(pattern), lines: follow.Splitter{Most: maxLine}, buffer: make([]byte, maxRead)}
	t.Cleanup(f.Close)
	return f, func() []float64 {
		t.Helper()
		found, _, err := f.read(time.Time{}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
}

func want(t *testing.T, got []float64, want ...float64) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	_, find := following(t, path, `step (\S+)`)
	want(t, find()) // it is not there yet
	mustAppend(t, path, "step 1\nnothing\nstep 2\nste")
	want(t, find(), 1, 2)
	mustAppend(t, path, "p 3")
	want(t, find()) // perhaps it is 30
	mustAppend(t, path, "0\rstep 4 step 5\rstep x\n")
	want(t, find(), 30, 4, 5)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, path, "step 6\n")
	want(t, find(), 6)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	want(t, find())
	mustAppend(t, path, "step 7\nstep 8\n")
	want(t, find(), 7, 8)
}

// A long line costs no memory, and the next one is found.
func TestLongLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	_, find := following(t, path, `done`)
	for range 8 {
		mustAppend(t, path, strings.Repeat("x", maxRead/2))
		want(t, find())
	}
	mustAppend(t, path, "done\ndone\n") // the first one is beyond what is looked at
	want(t, find(), 1)
}

// TestDearPattern: a pattern that looks through the rest of a line for each match costs no minutes.
func TestDearPattern(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	_, find := following(t, path, `x+?y|x`)
	mustAppend(t, path, strings.Repeat("x", maxLine)+"\n")
	if found := find(); len(found) > mostMatches {
		t.Errorf("%d matches", len(found))
	}
}

// More than is read is said to be unknown, and reading goes on behind it.
func TestTooMuch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, find := following(t, path, `done`)
	mustAppend(t, path, strings.Repeat("done\n", maxRead/5+1))
	if found, _, err := f.read(time.Time{}, time.Now()); !errors.Is(err, errSkipped) || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
	mustAppend(t, path, "done\n")
	want(t, find(), 1)
}

// The time of a line is that of the file, where the clocks agree.
func TestTimeOfLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	wrote := time.Unix(1000, 0)
	for _, tt := range []struct{ since, now, want int64 }{{999, 1001, 1000}, {1001, 1002, 1002}, {900, 950, 950}} {
		f, _ := following(t, path, "done")
		mustAppend(t, path, "done\n")
		if err := os.Chtimes(path, wrote, wrote); err != nil {
			t.Fatal(err)
		}
		_, at, err := f.read(time.Unix(tt.since, 0), time.Unix(tt.now, 0))
		if err != nil || at.Unix() != tt.want {
			t.Errorf("looked at from %d to %d: %v, %v", tt.since, tt.now, at, err)
		}
	}
}

// A pipe is not opened, not for a moment: whoever writes to it waits for its reader.
func TestPipesAreNotOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	if _, err := unix.InotifyAddWatch(watch, path, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	if _, err := follow.Open(path); err == nil || !strings.Contains(err.Error(), "pipe") {
		t.Errorf("error %v", err)
	}
	if n, err := unix.Read(watch, make([]byte, 4096)); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("it was opened: %d bytes of events, %v", n, err)
	}
}
