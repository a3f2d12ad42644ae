// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

func write(t *testing.T, path string, bytes int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	files.Write(t, path, make([]byte, bytes), 0o600)
}

// TestMeasureAgreesWithDu: on what has hard links, a sparse file, symbolic links (one of
// them to what is above) and directories that are named twice.
func TestMeasureAgreesWithDu(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a", 100_000)
	write(t, dir+"/deep/er/b", 5000)
	for i := range 2 * batch {
		write(t, dir+"/many/"+strconv.Itoa(i), i%3)
	}
	sparse := dir + "/sparse"
	write(t, sparse, 1)
	for _, err := range []error{
		os.Truncate(sparse, 1<<30), os.Link(dir+"/a", dir+"/deep/linked"),
		os.Symlink("..", dir+"/deep/up"), os.Symlink("/nowhere", dir+"/dangling"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	said, err := exec.Command("du", "-s", "--block-size=1", dir).Output()
	if err != nil {
		t.Skip("there is no du: ", err)
	}
	want, err := strconv.ParseUint(strings.Fields(string(said))[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Measure(t.Context(), Question{Directories: []string{dir, dir + "/deep"}, Most: patience.Limit})
	if err != nil || got.Bytes != want || got.Files != 3+2+2*batch || got.Missed != "" {
		t.Errorf("%+v, %v; du says %d bytes", got, err, want)
	}
}

func TestMeasureSaysWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a", 1)
	if got, err := Measure(t.Context(), Question{Directories: []string{dir}}); err != nil || got.Missed == "" {
		t.Errorf("without time: %+v, %v", got, err)
	}
	if _, err := Measure(t.Context(), Question{Directories: []string{dir + "/a"}, Most: time.Minute}); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("a file as a directory: %v", err)
	}
	for i, at := 0, dir; i <= deepest+1; i++ {
		at += "/d"
		if err := os.Mkdir(at, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Measure(t.Context(), Question{Directories: []string{dir}, Most: patience.Limit}); err != nil || !strings.Contains(got.Missed, "below each other") {
		t.Errorf("deep: %+v, %v", got, err)
	}
}
