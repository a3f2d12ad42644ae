// SPDX-License-Identifier: Apache-2.0

package byhand_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/cmd/attune/internal/byhand"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// What is undone is printed also where a journal beside cannot be read.
func TestUndoBesideABadJournal(t *testing.T) {
	dir := t.TempDir()
	known := new(actuatetest.Feigned).Kinds()
	kept, err := known.OpenKept(patience.Context(t), dir, "node")
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	id := kept.NextID()
	actuatetest.MustApply(t, actuate.New(actuate.Options{Journal: kept.Journal, Kinds: known}), actuatetest.MustProcess(t, os.Getpid()),
		&attunev1.Change{Id: id, Knob: "knob", Action: actuatetest.Setting("knob", 1)})
	mustSpoil(t, dir)
	var out bytes.Buffer
	if err := byhand.Undo(&cli.Env{Stdout: &out}, kept, []string{id}); !errors.Is(err, unix.ELOOP) {
		t.Errorf("undo: %v, want that a journal cannot be opened", err)
	}
	if got := out.String(); !strings.HasPrefix(got, "undone: change "+id+", knob of ") {
		t.Errorf("printed %q", got)
	}
	if left, err := kept.IDs(); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// mustSpoil puts a link in the place of a journal, which root does not follow either.
func mustSpoil(t *testing.T, dir string) {
	t.Helper()
	journal := actuatetest.MustJournal(t, dir)
	paths, err := filepath.Glob(filepath.Join(dir, "*.journal"))
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	if err := errors.Join(journal.Close(), os.Symlink("/dev/null", paths[0])); err != nil {
		t.Fatal(err)
	}
}
