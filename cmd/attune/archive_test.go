// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
)

// TestAccountIntoArchive: accounts of commands at once are all kept, and one that cannot be
// kept changes neither output nor exit code of its command.
func TestAccountIntoArchive(t *testing.T) {
	state := t.TempDir()
	const run = `export XDG_STATE_HOME=%; echo abc >input.dat
for i in 1 2 3 4; do $ATTUNE_BINARY account -q --archive -- cat input.dat & done; wait
$ATTUNE_BINARY account -q --name copy -- sh -c 'echo out; exit 3'; echo code $?
$ATTUNE_BINARY archive list --categories
echo kept $($ATTUNE_BINARY archive list --json cat | grep -c '"id"')
$ATTUNE_BINARY archive estimate cat --input-bytes 4 --for slurm`
	got := shell(t, strings.ReplaceAll("cd %; "+run, "%", state), "")
	for _, text := range []string{"out\ncode 3\n", "cat *.dat", "copy", "kept 4\n", "#SBATCH --mem="} {
		if !strings.Contains(got.stdout, text) || got.code != 0 {
			t.Errorf("%q is not in %+v", text, got)
		}
	}
	if n := strings.Count(got.stdout, "abc\n"); n != 4 {
		t.Errorf("%d outputs of cat: %s", n, got.stdout)
	}
	got = shell(t, "XDG_STATE_HOME="+state+" $ATTUNE_BINARY archive export --format ro-crate cat", "")
	if got.code != 0 || strings.Count(got.stdout, `"Run of cat"`) != 4 || !strings.Contains(got.stdout, "https://w3id.org/ro/wfrun/process/0.5") {
		t.Errorf("as a crate: %+v", got)
	}
	path := filepath.Join(state, "attune", "archive.db")
	files.Write(t, path, strings.Repeat("no database ", 100), 0o600)
	got = shell(t, "XDG_STATE_HOME="+state+" $ATTUNE_BINARY account --archive -- sh -c 'echo out; exit 3'", "")
	if got.code != 3 || got.stdout != "out\n" || !strings.Contains(got.stderr, path) || !strings.Contains(got.stderr, "move it away") {
		t.Errorf("with a damaged archive: %+v", got)
	}
}
