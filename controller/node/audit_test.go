// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/audit"
)

// TestTasksDoNotFillTheAuditLog: whoever hands over what is refused, or what is theirs again
// and again, makes no line for each: old files would be deleted, with what others did.
func TestTasksDoNotFillTheAuditLog(t *testing.T) {
	const many = 500
	pid, uid := ofUser(t)
	all := mustTuneAll(t)
	own := Task{PID: pid, UID: uid, Mode: "tune", Job: TaskJob{Kind: "slurm", ID: "7"}}
	long, another, wishes := own, own, own
	long.Mode, another.UID = strings.Repeat("x", 16<<10), uid+1
	for range 100 {
		wishes.Tunlets = append(wishes.Tunlets, strings.Repeat("x", maxName-1))
	}
	for _, tt := range []struct {
		name   string
		task   Task
		status int
		most   int64 // bytes in the log
	}{
		{"a mode that is none", long, http.StatusBadRequest, 64 << 10},
		{"as another user", another, http.StatusForbidden, 64 << 10},
		{"long wishes", wishes, http.StatusOK, many << 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			text, err := json.Marshal(tt.task)
			if err != nil {
				t.Fatal(err)
			}
			inBubble(t, func(b *bench) {
				b.policy = all
				b.registrations.tunlets = func(context.Context, []string) ([]string, error) { return nil, nil } // it is not known
				log, err := audit.Open(audit.Options{Path: path})
				if err != nil {
					t.Error(err)
					return
				}
				b.auditor.audit = log
				for range many {
					r := httptest.NewRequest(http.MethodPost, "/v1/task", strings.NewReader(string(text)))
					answer := httptest.NewRecorder()
					b.handler().ServeHTTP(answer, r.WithContext(context.WithValue(r.Context(), peerKey{}, uid)))
					if answer.Code != tt.status {
						t.Errorf("%d: %.100s", answer.Code, answer.Body)
						break
					}
				}
				if err := log.Close(); err != nil {
					t.Error(err)
				}
			})
			if info, err := os.Stat(path); err != nil || info.Size() > tt.most {
				t.Errorf("%d bytes for %d tasks: %v", info.Size(), many, err)
			}
		})
	}
}
