// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"os/exec"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/files"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestChecksumShares: one user's processes do not keep another's from being looked at.
func TestChecksumShares(t *testing.T) {
	var lines bytes.Buffer
	k := newChecker(nil, objfile.NewDigests(""), slog.New(slog.NewTextHandler(&lines, nil)))
	ended, end := context.WithCancel(t.Context())
	end() // nothing is read
	k.ctx = ended
	of := func(uid uint32) *candidate { return &candidate{process: &attunev1.Process{Uid: uid}} }
	taken := 0
	for range 5000 {
		if k.check(of(5001)) {
			taken++
		}
	}
	if taken != checksQueued {
		t.Errorf("%d of one user's wait, want %d", taken, checksQueued)
	}
	if told := bytes.Count(lines.Bytes(), []byte("\n")); told != 1 {
		t.Errorf("the log has %d lines on them, want 1", told)
	}
	if !k.check(of(5002)) {
		t.Error("no room for another user's")
	}
	if others := k.checked(of(5001)); len(others) != checksQueued-1 {
		t.Errorf("%d waited for the same file, want %d", len(others), checksQueued-1)
	}
	if !k.check(of(5001)) {
		t.Error("no room where there was some")
	}
	k.close()
}

// TestChecksumOfManyProcesses: a program is read once, however many processes run it, and those
// for which there was no room are looked at again.
func TestChecksumOfManyProcesses(t *testing.T) {
	path := mustProgram(t, "attune-t-many")
	data := files.Read(t, path)
	file, err := procid.FileOf(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	registration := site("many", path)
	registration.Sha256 = hex.EncodeToString(sum[:])
	r := newRecorder()
	w, err := New(Options{Handler: r})
	if err != nil {
		t.Fatal(err)
	}
	w.state.take([]*attunev1.Registration{registration})
	w.checker.ctx = t.Context()
	d, reads := w.state.decider, 0
	look := func(from, to int) { // at processes that have ended, with pids that there are none of
		for i := from; i < to; i++ {
			d.settle(&candidate{names: []string{path}, process: &attunev1.Process{
				Identity:   &attunev1.ProcessIdentity{Pid: int32(1<<23 + i), StartTicks: 1, ExeDevice: file.Dev, ExeInode: file.Ino},
				Executable: path,
			}}, nil)
		}
		for d.checker.waiting[0] > 0 {
			d.checked(<-d.checker.hashed)
			reads++
		}
	}
	const processes = 300
	look(0, processes)
	if len(r.found) != checksQueued || reads != 1 {
		t.Errorf("%d processes are given after %d reads, want %d after 1", len(r.found), reads, checksQueued)
	}
	if missed := w.Status().Missed; !d.skipped || missed != processes-checksQueued {
		t.Errorf("looked at again: %v; %d counted as missed, want %d", d.skipped, missed, processes-checksQueued)
	}
	if look(checksQueued, processes); len(r.found) != processes || reads != 2 {
		t.Errorf("%d processes are given after %d reads, want all %d after 2", len(r.found), reads, processes)
	}
	w.checker.close()
}

// TestChecksumThatFails: why it could not be read is that of one process, and the others have
// theirs read.
func TestChecksumThatFails(t *testing.T) {
	r := newRecorder()
	w, err := New(Options{Handler: r})
	if err != nil {
		t.Fatal(err)
	}
	registration := site("many", "attune-t-absent")
	registration.Sha256 = "0"
	w.state.take([]*attunev1.Registration{registration})
	w.checker.ctx = t.Context()
	d := w.state.decider
	for pid := range int32(3) {
		d.settle(&candidate{names: []string{"attune-t-absent"}, process: &attunev1.Process{
			Identity: &attunev1.ProcessIdentity{Pid: 1<<23 + pid, StartTicks: 1, ExeInode: 1},
		}}, nil)
	}
	for reads := 1; d.checker.waiting[0] > 0; reads++ {
		d.checked(<-d.checker.hashed)
		if len(r.mismatches) != reads {
			t.Errorf("%d mismatches after %d reads", len(r.mismatches), reads)
		}
	}
	if len(r.mismatches) != 3 {
		t.Errorf("%d mismatches, want 3", len(r.mismatches))
	}
	w.checker.close()
}

// TestChecksumOfAnotherProgram: what a process executes since it was found is not taken for the
// file that it, and all that wait for its checksum, ran then.
func TestChecksumOfAnotherProgram(t *testing.T) {
	held, err := procid.Open(mustStart(t, exec.Command("sleep", "1000")))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	ran, err := procid.FileOf(mustProgram(t, "attune-t-ran"))
	if err != nil {
		t.Fatal(err)
	}
	k := newChecker(nil, objfile.NewDigests(""), slog.New(slog.DiscardHandler))
	sum, err := k.sumOf(t.Context(), &candidate{held: held, process: &attunev1.Process{
		Identity: &attunev1.ProcessIdentity{Pid: int32(held.PID()), ExeDevice: ran.Dev, ExeInode: ran.Ino},
	}})
	if !errors.Is(err, procid.ErrGone) {
		t.Errorf("%q, %v", sum, err)
	}
}
