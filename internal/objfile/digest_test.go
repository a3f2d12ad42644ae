// SPDX-License-Identifier: Apache-2.0

package objfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// A digest outlives the process that computed it, and is not believed once the
// file is another one.
func TestDigestsOutliveTheProcess(t *testing.T) {
	const program = "/bin/sh" // installed long ago, so its times are settled
	dir := t.TempDir()
	kept := func() *objfile.Digests { return objfile.NewDigests(dir) }
	want, err := kept().Digest(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	if sum, ok := kept().Known(program); !ok || sum != want {
		t.Errorf("known afterwards: %q, %v, want %s", sum, ok, want)
	}
	entry := onlyEntry(t, dir)
	text := string(files.Read(t, entry))
	for name, bad := range map[string]string{
		"another size":  "1" + text,
		"truncated":     text[:len(text)-2],
		"not a digest":  strings.Replace(text, want, strings.Repeat("z", 64), 1),
		"more than one": text + text,
		"empty":         "",
	} {
		files.Write(t, entry, bad, 0o600)
		if sum, ok := kept().Known(program); ok {
			t.Errorf("%s: believed as %s", name, sum)
		}
		if sum, err := kept().Digest(t.Context(), program); err != nil || sum != want {
			t.Errorf("%s: digest %s, %v, want %s", name, sum, err, want)
		}
		if got := string(files.Read(t, entry)); got != text {
			t.Errorf("%s: not made good, the entry is %q", name, got)
		}
	}
}

// What was changed a moment ago may change again with the same times.
func TestDigestsOfFreshFilesAreNotKept(t *testing.T) {
	patience.Until(t, "a file that is looked at while it is fresh, and not kept", func() bool {
		dir := t.TempDir()
		path := mustWrite(t, []byte("fresh"), 0o755)
		if _, err := objfile.NewDigests(dir).Digest(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries) == 0
	})
}

func TestDigestDirectoryIsBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range 4 {
		files.Write(t, filepath.Join(dir, fmt.Sprintf("0-%d", i)), "", 0o600)
	}
	digests := objfile.NewDigests(dir)
	objfile.KeepDigests(digests, 4)
	if _, err := digests.Digest(t.Context(), "/bin/sh"); err != nil {
		t.Fatal(err)
	}
	onlyEntry(t, dir)
}

func TestDigestsWithoutTheirDirectory(t *testing.T) {
	digests := objfile.NewDigests(filepath.Join(t.TempDir(), "gone"))
	if sum, err := digests.Digest(t.Context(), "/bin/sh"); err != nil || len(sum) != 64 {
		t.Errorf("digest %q, %v", sum, err)
	}
}

func onlyEntry(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("entries %v, %v, want one", entries, err)
	}
	return filepath.Join(dir, entries[0].Name())
}
