// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/leaktest"
)

// A variable makes this program one of the children below, with the log's path
// as its value.
const (
	writesVariable = "AUDIT_TEST_WRITES"
	fullVariable   = "AUDIT_TEST_FULL"
	cutVariable    = "AUDIT_TEST_CUT"
	startVariable  = "AUDIT_TEST_START"
)

func TestMain(m *testing.M) {
	children := map[string]func(path string) error{writesVariable: writes, fullVariable: fills, cutVariable: cutAnywhere, startVariable: startsFull}
	for variable, child := range children {
		if path := os.Getenv(variable); path != "" {
			if err := child(path); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	leaktest.Main(m)
}

func child(t *testing.T, variable, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), variable+"="+path)
	return cmd
}

// writes writes lines until it is killed.
func writes(path string) error {
	l, err := Open(Options{Path: path})
	if err != nil {
		return err
	}
	for {
		l.Write(Entry{Event: Asked, What: strings.Repeat("x", 1000)})
	}
}

// TestKilled: what kill -9 leaves behind can be read, but for one line at most,
// and is gone on with.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	cmd := child(t, writesVariable, path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	const enough = 1 << 20
	for {
		if info, err := os.Stat(path); err == nil && info.Size() > enough {
			break
		}
		time.Sleep(time.Millisecond) // polls what another process does
	}
	if err := errors.Join(cmd.Process.Kill(), ignoreStatus(cmd.Wait())); err != nil {
		t.Fatal(err)
	}
	if err := mustOpen(t, Options{Path: path}).Close(); err != nil {
		t.Fatal(err)
	}
	entries, broken := read(t, path)
	n := len(entries)
	if broken > 1 || n < enough/2000 || entries[n-2].Event != Started || entries[n-1].Event != Ended {
		t.Fatalf("%d lines, %d broken", n, broken)
	}
}

func ignoreStatus(err error) error {
	if _, exited := errors.AsType[*exec.ExitError](err); exited {
		return nil
	}
	return err
}

// fills makes files end at fullBytes, as a full disk does: the write that gets
// there is cut off. Later there is room again.
func fills(path string) error {
	room, err := endFiles(fullBytes)
	if err != nil {
		return err
	}
	l, err := Open(Options{Path: path})
	if err != nil {
		return err
	}
	for l.Sync(context.Background()) == nil {
		l.Write(Entry{Event: Asked, What: strings.Repeat("x", 100)})
	}
	if err := l.Trouble(); !errors.Is(err, unix.EFBIG) {
		return fmt.Errorf("trouble: %w", err)
	}
	for l.Write(Entry{Event: Asked, What: strings.Repeat("y", 100)}) != 0 {
		continue // until no more can wait
	}
	if err := room(); err != nil {
		return err
	}
	for l.Trouble() != nil {
		time.Sleep(time.Millisecond) // the disk is asked again once a second
	}
	return l.Close()
}

const fullBytes = 8000

// endFiles makes this program's files end at size, until room is called.
func endFiles(size uint64) (room func() error, err error) {
	signal.Ignore(unix.SIGXFSZ)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return nil, err
	}
	whole := limit
	limit.Cur = size
	return func() error { return unix.Setrlimit(unix.RLIMIT_FSIZE, &whole) }, unix.Setrlimit(unix.RLIMIT_FSIZE, &limit)
}

// TestFullDisk: requests go on, lines wait and are lost, and the log says how
// many.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if out, err := child(t, fullVariable, path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	entries, broken := read(t, path)
	mustCount(t, entries, 1)
	var asked, lost uint64
	for _, e := range entries {
		switch e.Event {
		case Asked:
			asked++
		case Lost:
			lost += e.Count
		}
	}
	if broken > 1 { // file systems differ in whether they take a part
		t.Errorf("%d lines are cut off, want at most the one that met the end", broken)
	}
	if lost != 1 || asked < maxPending/1000 {
		t.Errorf("%d lines, %d told as lost", asked, lost)
	}
}

// cutAnywhere lets the disk be full at each byte of some lines in turn.
func cutAnywhere(path string) error {
	const lines = "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n"
	for size := range len(lines) {
		file := fmt.Sprintf("%s.%d", path, size)
		w := &writer{path: file}
		room, err := endFiles(uint64(size))
		if err != nil {
			return err
		}
		left, full := w.append([]byte(lines))
		if err := room(); err != nil {
			return err
		}
		if !errors.Is(full, unix.EFBIG) {
			return fmt.Errorf("%d bytes: %w", size, full)
		}
		if left, err = w.append(left); err != nil || len(left) > 0 {
			return fmt.Errorf("%d bytes: %q is left: %w", size, left, err)
		}
		if err := w.close(); err != nil {
			return err
		}
	}
	return nil
}

// TestCutAnywhere: wherever the disk was full, each line is there once.
func TestCutAnywhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if out, err := child(t, cutVariable, path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	files, err := filepath.Glob(path + ".*")
	if err != nil || len(files) < 20 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range files {
		entries, broken := read(t, file)
		mustCount(t, entries, 1)
		if len(entries) != 3 || broken > 1 {
			t.Errorf("%s: %d lines, %d cut off", filepath.Ext(file), len(entries), broken)
		}
	}
}

// startsFull opens a log whose last line was cut off by a disk that is still full. Later
// there is room.
func startsFull(path string) error {
	const cut = `{"n":1,`
	if err := os.WriteFile(path, []byte(cut), 0o600); err != nil {
		return err
	}
	room, err := endFiles(uint64(len(cut)))
	if err != nil {
		return err
	}
	l, err := Open(Options{Path: path})
	if err != nil {
		return err
	}
	if err := l.Trouble(); !errors.Is(err, unix.EFBIG) {
		return fmt.Errorf("trouble: %w", err)
	}
	l.Write(Entry{Event: Asked, What: "meanwhile"})
	if err := room(); err != nil {
		return err
	}
	for l.Trouble() != nil {
		time.Sleep(time.Millisecond) // the disk is asked again once a second
	}
	return l.Close()
}

// TestStartsOnFullDisk: a service starts all the same, and what it had to say is written
// when there is room.
func TestStartsOnFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if out, err := child(t, startVariable, path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	entries, broken := read(t, path)
	mustCount(t, entries, 1)
	if broken != 1 || len(entries) != 3 || entries[0].Event != Started || entries[1].What != "meanwhile" {
		t.Errorf("%d broken, %+v", broken, entries)
	}
}
