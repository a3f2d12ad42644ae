// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"

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
