// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestChecksumShares: one user's processes do not keep another's from being looked at.
func TestChecksumShares(t *testing.T) {
	var lines bytes.Buffer
	k := newChecker(nil, objfile.NewDigests(objfile.DigestsOptions{}), slog.New(slog.NewTextHandler(&lines, nil)))
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
	k.checked(of(5001))
	if !k.check(of(5001)) {
		t.Error("no room where there was some")
	}
	k.group.Wait()
}
