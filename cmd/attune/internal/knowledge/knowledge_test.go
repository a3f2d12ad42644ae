// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
)

// What cannot be opened at one time may well be later in the same run.
func TestKnowledgeIsOpenedLater(t *testing.T) {
	home := filepath.Join(t.TempDir(), "state")
	t.Setenv("XDG_STATE_HOME", home)
	files.Write(t, home, "", 0o600)
	k := &Lazy{}
	if _, err := k.Known(t.Context(), "00ff"); err == nil {
		t.Fatal("it was opened without a directory")
	}
	if err := os.Remove(home); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Known(t.Context(), "00ff"); err != nil {
		t.Error(err)
	}
	if err := k.Record(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}
