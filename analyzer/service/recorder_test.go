// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestRecorderIsBounded has more sessions than are kept for a registry that is
// away: the latest are sent when it is back, and it is said how many are missing.
func TestRecorderIsBounded(t *testing.T) {
	const more = 3
	var log strings.Builder
	away := true
	sent := make(map[string]bool)
	r := newRecorder(func(_ context.Context, record *attunev1.SessionRecord) error {
		if away {
			return errors.New("away")
		}
		sent[record.GetId()] = true
		return nil
	}, slog.New(slog.NewTextHandler(&log, nil)))
	for n := range maxRecords + more {
		r.put(&attunev1.SessionRecord{Id: strconv.Itoa(n)})
	}
	if r.flush(t.Context()) {
		t.Error("all was sent, to nobody")
	}
	away = false
	if !r.flush(t.Context()) {
		t.Error("not all was sent")
	}
	if last := strconv.Itoa(maxRecords + more - 1); len(sent) != maxRecords || !sent[last] {
		t.Errorf("%d records were sent, the last one among them: %v", len(sent), sent[last])
	}
	if !strings.Contains(log.String(), "dropped="+strconv.Itoa(more)) {
		t.Error(log.String())
	}
}

// TestLargeRecords: of a record that is too large the registry gets the changes that fit, which is
// said once, and one that is too large without any holds up no others.
func TestLargeRecords(t *testing.T) {
	const most = 10_000
	var log strings.Builder
	sent := make(map[string]*attunev1.SessionRecord)
	r := newRecorder(func(_ context.Context, record *attunev1.SessionRecord) error {
		if size := proto.Size(record); size > most {
			return &registry.TooLargeError{Record: "SessionRecord", Bytes: size, Most: most}
		}
		sent[record.GetId()] = record
		return nil
	}, slog.New(slog.NewTextHandler(&log, nil)))
	changes := make([]*attunev1.KeptChange, 500)
	for n := range changes {
		changes[n] = &attunev1.KeptChange{Id: strconv.Itoa(n), Action: strings.Repeat("a", 50)}
	}
	for range 2 {
		r.put(&attunev1.SessionRecord{Id: "many", KeptChanges: changes})
		r.put(&attunev1.SessionRecord{Id: "long", CommandLine: []string{strings.Repeat("a", 2*most)}})
		r.put(&attunev1.SessionRecord{Id: "small"})
		if !r.flush(t.Context()) {
			t.Error("not all was sent")
		}
	}
	kept := sent["many"].GetKeptChanges()
	if len(sent) != 2 || sent["small"] == nil || len(kept) == 0 || proto.Size(sent["many"]) < most*9/10 {
		t.Errorf("%d records were sent, one with %d changes", len(sent), len(kept))
	}
	if strings.Count(log.String(), "\n") != 2 || !strings.Contains(log.String(), "left_out="+strconv.Itoa(len(changes)-len(kept))) {
		t.Error(log.String())
	}
}
