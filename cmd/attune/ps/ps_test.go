// SPDX-License-Identifier: Apache-2.0

package ps

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
)

// TestReasonsAreText: a program of another user cannot have a terminal obey it.
func TestReasonsAreText(t *testing.T) {
	var out strings.Builder
	list := []Process{{PID: 7, Ways: []way{{Name: "preload", Reason: "unknown dynamic loader /tmp/\x1b]0;mine\a"}}}}
	if err := writeRunning(&cli.Env{Stdout: &out}, list); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "loader /tmp/?]0;mine?\n") || strings.ContainsAny(got, "\x1b\a") {
		t.Errorf("%q", got)
	}
}
