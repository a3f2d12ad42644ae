// SPDX-License-Identifier: Apache-2.0

package node

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/turns"
)

// The health endpoint names the loops that stand, and nobody's sessions.
func TestHealthNamesLoopsThatStand(t *testing.T) {
	tests := []struct {
		name     string
		standing []turns.Standing
		status   int
		says     string
	}{
		{"all turn", nil, http.StatusOK, "ok\n"},
		{
			"some stand", []turns.Standing{{Name: "discovery", For: time.Minute, Essential: true}, {Name: "session r of user 5001", For: time.Hour}},
			http.StatusServiceUnavailable, "discovery stands for 1m0s\na session stands for 1h0m0s\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := &local{standing: func() []turns.Standing { return tt.standing }}
			answer := httptest.NewRecorder()
			l.handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/healthz", strings.NewReader("")))
			if answer.Code != tt.status || answer.Body.String() != tt.says {
				t.Errorf("%d %q, want %d %q", answer.Code, answer.Body, tt.status, tt.says)
			}
		})
	}
}
