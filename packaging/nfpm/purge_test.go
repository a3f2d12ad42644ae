// SPDX-License-Identifier: Apache-2.0

package nfpm

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPurge: the purge of a package takes what is its own, and leaves what the others have,
// whichever goes first.
func TestPurge(t *testing.T) {
	own := map[string][]string{
		"attune": {
			"/etc/attune/attune.yaml", "/etc/attune/off", "/etc/attune/policy.yaml", "/var/cache/attune/digests/1",
			"/var/lib/attune/1.journal", "/var/lib/attune/archive.db", "/var/lib/attune/knowledge.db", "/var/lib/attune/node1.1.kept",
		},
		"attuned": {
			"/etc/attune/pki/.node.key.lock", "/etc/attune/pki/node.key", "/run/attune/attuned.sock", "/var/lib/attune/journals/1.journal", "/var/lib/attune/lib/libattune-dm.so",
			"/var/lib/attune/audit.jsonl", "/var/lib/attune/audit.jsonl.20260101T000000.000Z", "/var/lib/attune/pki/node.key", "/var/lib/attune/revoked.json",
		},
		"attune-analyzer": {
			"/etc/attune/pki/.analyzer.key.lock", "/etc/attune/pki/analyzer.crt", "/etc/attune/pki/analyzer.key",
			"/var/cache/attune/analyzer/1", "/var/lib/attune/analyzer/audit.jsonl",
		},
	}
	for _, order := range [][]string{{"attuned", "attune", "attune-analyzer"}, {"attune", "attuned", "attune-analyzer"}, {"attune-analyzer", "attuned", "attune"}} {
		t.Run(order[0]+" first", func(t *testing.T) {
			root := t.TempDir()
			for _, name := range order {
				mustMake(t, root, own[name])
			}
			for i, name := range order {
				mustPurge(t, root, name)
				var want []string
				for _, other := range order[i+1:] {
					want = append(want, own[other]...)
				}
				slices.Sort(want)
				if diff := cmp.Diff(want, filesBelow(t, root)); diff != "" {
					t.Errorf("after the purge of %s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

func mustMake(t *testing.T, root string, files []string) {
	t.Helper()
	for _, name := range files {
		if err := os.MkdirAll(filepath.Dir(root+name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// mustPurge runs a package's script with another root for the directories that it names.
func mustPurge(t *testing.T, root, name string) {
	t.Helper()
	script, err := os.ReadFile("../maintainer/" + name + ".postremove")
	if err != nil {
		t.Fatal(err)
	}
	const withoutUsers = "getent() { false; }\n" // this machine's stay
	text := withoutUsers + strings.NewReplacer("/etc/", root+"/etc/", "/run/", root+"/run/", "/var/", root+"/var/").Replace(string(script))
	if out, err := exec.Command("sh", "-c", text, "sh", "purge").CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}

func filesBelow(t *testing.T, root string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, strings.TrimPrefix(path, root))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
