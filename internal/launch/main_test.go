// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/gobuild"
)

// launcher and counter are the built testdata/run and testdata/count.
var launcher, counter string

func TestMain(m *testing.M) {
	setUp := func(bin string) error {
		launcher, counter = filepath.Join(bin, "run"), filepath.Join(bin, "count")
		return nil
	}
	os.Exit(gobuild.Main(m, setUp,
		gobuild.Command{Package: "./testdata/run", Flags: []string{"-ldflags", "-E attune_entry"}},
		gobuild.Command{Package: "./testdata/count"},
	))
}
