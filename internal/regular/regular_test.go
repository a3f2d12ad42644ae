// SPDX-License-Identifier: Apache-2.0

package regular

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/files"
)

func mustWrite(t *testing.T, path, text string) (inode uint64) {
	t.Helper()
	files.Write(t, path, text, 0o600)
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino
}

// opened counts how often a file is opened, from now on.
func opened(t *testing.T, path string) (count func() int) {
	t.Helper()
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(watch) })
	if _, err := unix.InotifyAddWatch(watch, path, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	return func() int {
		n, _ := unix.Read(watch, make([]byte, 1<<16)) // EAGAIN: never
		return max(n, 0) / unix.SizeofInotifyEvent
	}
}

// TestNothingElseIsOpened: also where a pipe takes the place of a regular file all the time.
func TestNothingElseIsOpened(t *testing.T) {
	dir := t.TempDir()
	file, pipe, name := filepath.Join(dir, "file"), filepath.Join(dir, "pipe"), filepath.Join(dir, "name")
	mustWrite(t, file, "x")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	count := opened(t, pipe)
	_, err := Open(pipe)
	var kind *KindError
	if !errors.As(err, &kind) || kind.Kind != unix.S_IFIFO {
		t.Errorf("a pipe: %v", err)
	}
	var end atomic.Bool
	ended := make(chan struct{})
	if err := os.Symlink(file, name); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(ended)
		for next := name + ".new"; !end.Load(); {
			for _, to := range []string{pipe, file} {
				_ = os.Symlink(to, next) // the test is what is opened
				_ = os.Rename(next, name)
			}
		}
	}()
	for range 20_000 {
		if f, err := Open(name); err == nil {
			_ = f.Close()
		}
	}
	end.Store(true)
	<-ended
	if n := count(); n > 0 {
		t.Errorf("the pipe was opened %d times", n)
	}
}

func TestOpenInPlace(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	secret, own := filepath.Join(dir, "secret"), filepath.Join(dir, "own")
	mustWrite(t, secret, "secret")
	inode := mustWrite(t, own, "own")
	file, err := OpenInPlace(own, inode)
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	link, below := filepath.Join(dir, "link"), filepath.Join(dir, "below")
	if err := errors.Join(os.Symlink(own, link), os.Symlink(dir, below)); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"a link": link, "below a link": filepath.Join(below, "own"), "another file": secret} {
		if _, err := OpenInPlace(path, inode); err == nil {
			t.Errorf("%s was opened", name)
		}
	}
}

func TestChecksum(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	mustWrite(t, path, "abc")
	sum := func(ctx context.Context) (string, error) {
		file, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		return Checksum(ctx, file)
	}
	if text, err := sum(t.Context()); err != nil || !strings.HasPrefix(text, "ba7816bf") {
		t.Errorf("%s, %v", text, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := sum(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if err := os.Truncate(path, 1<<42); err != nil {
		t.Skip("no sparse files here: ", err)
	}
	if _, err := sum(t.Context()); err == nil {
		t.Error("a file of holes was read")
	}
}

// TestLease: whoever has a lease of a file has 45 seconds to give it back, and nobody waits for that.
func TestLease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	mustWrite(t, path, "x")
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skip("no leases here: ", err)
	}
	if other, err := Open(path); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("opened, or another error: %v, %v", other, err)
	}
}
