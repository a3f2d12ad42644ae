// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package child

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/silentfs"
)

// mustSilence returns a pool whose processes read a file of a silent server when they are
// told what for, from where no signal wakes them, and the server.
func mustSilence(t *testing.T) (*Pool, *silentfs.FS) {
	t.Helper()
	var path string
	t.Cleanup(func() { // when the server is gone
		patience.Until(t, "the end of what was left behind", func() bool { return len(executing(t, path)) == 0 })
	})
	fs := silentfs.Mount(t, os.Getuid(), nil)
	path = fs.File
	if _, err := os.Stat(path); err != nil { // it is mounted when that was answered
		t.Fatal(err)
	}
	fs.Silence(true)
	return mustPool(t, "reads "+path), fs
}

// A session whose process no signal ends goes on without it, whether that has answered
// before or not.
func TestSessionLeftBehind(t *testing.T) {
	for name, answers := range map[string]bool{"answers": true, "does not answer": false} {
		t.Run(name, func(t *testing.T) {
			pool, fs := mustSilence(t)
			late := make(chan struct{})
			pool.late = func() { close(late) }
			source := new(steady)
			c := mustNew(t, pool, source)
			var log bytes.Buffer
			c.log = slog.New(slog.NewTextHandler(&log, nil))
			if err := c.Start(patience.Context(t)); err != nil {
				t.Fatal(err)
			}
			patience.Receive(t, "read of the file", fs.Asked)
			ctx, cancel := context.WithCancel(patience.Context(t))
			defer cancel()
			if !answers {
				cancel()
			}
			stopped := make(chan error, 1)
			go func() { stopped <- c.Stop(ctx) }()
			if err := patience.Receive(t, "end of the session", stopped); errors.Is(err, errLeftBehind) == answers {
				t.Errorf("stop: %v", err)
			}
			patience.Closed(t, "the end", c.Ended())
			if !source.closed || !bytes.Contains(log.Bytes(), []byte("is left behind")) {
				t.Errorf("its processes are let go: %v; told: %s", source.closed, &log)
			}
			fs.Silence(false)
			patience.Closed(t, "the end of the process", late)
		})
	}
}

// A process that hangs while it undoes what was left holds up nobody for good.
func TestRestoreLeftBehind(t *testing.T) {
	pool, fs := mustSilence(t)
	ctx, cancel := context.WithCancel(patience.Context(t))
	done := make(chan error, 1)
	go func() {
		_, err := pool.Restore(ctx, t.TempDir(), false)
		done <- err
	}()
	patience.Receive(t, "read of the file", fs.Asked)
	cancel()
	if err := patience.Receive(t, "end of restoring", done); !errors.Is(err, errLeftBehind) {
		t.Errorf("%v, want %v", err, errLeftBehind)
	}
}
