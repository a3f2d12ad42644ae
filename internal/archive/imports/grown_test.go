// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/archive"
)

// TestGrown: what was imported already is known when the file has grown, and was written again; and
// records that are the same to the letter are several.
func TestGrown(t *testing.T) {
	trace, timed := string(mustFile(t, "nextflow.tsv").Text), string(mustFile(t, "time.txt").Text)
	lines := strings.SplitAfter(trace, "\n")
	first, _, _ := strings.Cut(timed, "Command terminated")
	for _, tt := range []struct{ name, format, before, after string }{
		{"trace", "nextflow", lines[0] + lines[1], trace},
		{"trace without a last line end", "nextflow", lines[0] + strings.TrimSpace(lines[1]), trace},
		{"trace of equal tasks", "nextflow", lines[0] + lines[1], lines[0] + lines[1] + lines[1]},
		{"times", "time", first, timed},
		{"times of equal tasks", "time", timed, timed + timed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store, err := archive.Open(t.Context(), filepath.Join(t.TempDir(), "archive.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			add := func(text string, written time.Time) (archive.Added, int) {
				got, err := Read(tt.format, File{Name: "it", Text: []byte(text), Changed: written, Local: time.UTC})
				if err != nil {
					t.Fatal(err)
				}
				added, err := store.Add(t.Context(), got.Tasks...)
				if err != nil {
					t.Fatal(err)
				}
				return added, len(got.Tasks)
			}
			_, known := add(tt.before, changed)
			if added, all := add(tt.after, changed.Add(time.Hour)); added.Known != known || added.New != all-known || added.New == 0 {
				t.Errorf("%+v of %d tasks, %d of them known", added, all, known)
			}
		})
	}
}
