// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/safepage"
)

// TestRunSaysWhatItTook: on the last page, in the JSON document and on the page for a
// browser; and of a recording, which has the same account.
func TestRunSaysWhatItTook(t *testing.T) {
	dir := t.TempDir()
	got := shellIn(t, dir, `SLURM_JOB_ID=7 SLURM_CPUS_ON_NODE=16 SLURM_MEM_PER_NODE=65536 $ATTUNE_BINARY run --report r.json --html p.html --record r.rec -- sh -c 'sleep 3; head -c 4000 /dev/zero | wc -c'`, "")
	if got.stdout != "4000\n" || got.code != 0 {
		t.Fatalf("%+v", got)
	}
	recorded := shellIn(t, dir, `$ATTUNE_BINARY report --html again.html r.rec`, "")
	for where, text := range map[string]string{"the last page": got.stderr, "the recorded one": recorded.stdout} {
		for _, want := range []string{"of 16 cores asked of Slurm", "of 68.7 GB asked of Slurm", "% sleeping", "bound by  itself", "#SBATCH --mem=100M"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in %s:\n%s", want, where, text)
			}
		}
	}
	for _, page := range []string{"p.html", "again.html"} {
		text := files.Read(t, filepath.Join(dir, page))
		safepage.Check(t, text)
	}
	text := files.Read(t, filepath.Join(dir, "r.json"))
	var r report.Report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if a := r.Account; a == nil || a.WallSeconds < 3 || a.CPUSeconds == nil || *a.Time.Sleep < 0.5 || a.Command[0] != "sh" {
		t.Errorf("account %+v", a)
	}
}

func TestRunRefusesPage(t *testing.T) {
	if got := shell(t, `$ATTUNE_BINARY run --html no/such/p.html -- echo out`, ""); got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, "no/such/p.html") || !strings.Contains(got.stderr, "--html") {
		t.Errorf("%+v", got)
	}
}
