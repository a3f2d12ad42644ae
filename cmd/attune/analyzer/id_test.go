// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
)

func TestAnalyzerID(t *testing.T) {
	dir := t.TempDir()
	mustID := func(host string) string {
		t.Helper()
		id, err := analyzerID(dir, host)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := mustID("n1.example.org")
	if !strings.HasPrefix(first, "n1-example-org-") {
		t.Errorf("id %q", first)
	}
	if again := mustID("n1.example.org"); again != first {
		t.Errorf("id %q at the second start, %q at the first", again, first)
	}
	copied := mustID("n2.example.org")
	if copied == first {
		t.Errorf("two hosts have the id %q", copied)
	}
	// What a full disk has left of the file, or anybody has written into it.
	for _, text := range []string{"", "n2-example-org-", "n2-example-org-a b", "*"} {
		files.Write(t, filepath.Join(dir, "id"), text, 0o600)
		if id := mustID("n2.example.org"); id == text || id != idText(id) || id != mustID("n2.example.org") {
			t.Errorf("id %q from a file with %q", id, text)
		}
	}
}
