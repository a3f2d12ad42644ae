// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestOnlyThreadInTransfer: a search among threads that are all left alone, since a stop would
// cut their transfers short, has looked at them, and names one.
func TestOnlyThreadInTransfer(t *testing.T) {
	writer := exec.Command("cat", "/dev/zero") // of more at a time than a pipe takes at once
	reader, err := writer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	pid := writer.Process.Pid
	defer func() {
		_ = reader.Close()
		_ = writer.Wait() // by SIGPIPE
	}()
	patience.Until(t, "the pipe to be full", func() bool {
		call, ok := CurrentCall(pid, pid)
		return ok && call.Number == unix.SYS_WRITE
	})
	process := mustOpen(t, pid)
	b := NewBorrower(process, procid.Status{}, BorrowerOptions{})
	search := NewSearch(b, SearchOptions{Suits: b.Borrowable, Patience: 200 * time.Millisecond})
	var cost Cost
	err = Run(process, func(tracer *Tracer) error { return search.Find(t.Context(), tracer, &cost, nil) })
	if !errors.Is(err, ErrNoSafePoint) || !strings.Contains(err.Error(), fmt.Sprintf("thread %d waits", pid)) {
		t.Error(err)
	}
	if search.looks == 0 || cost.Attempts != 0 {
		t.Errorf("%d looks, %d of them with a stop", search.looks, cost.Attempts)
	}
}

// TestAwaitTransfers: all threads may be stopped when their transfers have ended, and not
// before.
func TestAwaitTransfers(t *testing.T) {
	target := targets.StartProgram(t, "transfers")
	patience.Until(t, "a transfer", func() bool { return errors.Is(allStop(target.PID), ErrBusy) })
	brief, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := AwaitTransfers(brief, target.PID); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v, want %v", err, ErrBusy)
	}
	stopped := targets.StartProgram(t, "transfers")
	patience.Until(t, "a transfer", func() bool { return errors.Is(allStop(stopped.PID), ErrBusy) })
	if err := unix.Kill(stopped.PID, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the stop", func() bool {
		err := AwaitTransfers(patience.Context(t), stopped.PID)
		return errors.Is(err, ErrUnsuited)
	})
	ended := make(chan error, 1)
	go func() { ended <- AwaitTransfers(t.Context(), target.PID) }()
	target.Right(t)
	if err := patience.Receive(t, "the end of the transfers", ended); err != nil {
		t.Error(err)
	}
	target.Finish(t)
}
