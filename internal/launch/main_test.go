// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen.
const patience = 5 * time.Second

// launcher and counter are the built testdata/run and testdata/count.
var launcher, counter string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "launch")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	launcher, counter = filepath.Join(dir, "run"), filepath.Join(dir, "count")
	flags := map[string]string{"run": "-E attune_entry"}
	for _, bin := range []string{launcher, counter} {
		build := exec.Command("go", "build", "-ldflags", flags[filepath.Base(bin)], "-o", bin, "./testdata/"+filepath.Base(bin))
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v: %s", bin, err, out)
			return 1
		}
	}
	return m.Run()
}
