// SPDX-License-Identifier: Apache-2.0

package child

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// A journal that cannot be read is told of: what it has is left in force.
func TestRestoreTellsOfJournals(t *testing.T) {
	boot, bootErr := procid.BootID()
	namespace, err := procid.Namespace()
	if err := errors.Join(bootErr, err); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	unreadable := filepath.Join(dir, fmt.Sprintf("1.0.%s.%d.journal", boot, namespace))
	if err := os.Mkdir(unreadable, 0o700); err != nil {
		t.Fatal(err)
	}
	restored, err := mustPool(t, "serve").Restore(patience.Context(t), dir, false)
	if err != nil || len(restored) != 1 || restored[0].Error == "" {
		t.Errorf("restored %+v, %v; want why the journal cannot be read", restored, err)
	}
}
