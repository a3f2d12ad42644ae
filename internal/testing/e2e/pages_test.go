// SPDX-License-Identifier: Apache-2.0

//go:build e2e || site

package e2e

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
)

// commandsOf returns what a page tells its reader to type: its blocks of sh.
func commandsOf(t *testing.T, page string) string {
	t.Helper()
	text := files.Read(t, page)
	var out strings.Builder
	typed := false
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "```"):
			typed = strings.TrimSpace(line) == "```sh"
		case typed:
			out.WriteString(line)
		}
	}
	return out.String()
}
