// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
)

// A directory that cannot be read is not passed over without a word: the tunlet that
// nobody finds may be there.
func TestUnreadableDirectoryIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	files.Write(t, file, "", 0o600)
	found := Find([]string{file, filepath.Join(t.TempDir(), "nowhere")}, []string{"nosuch"})
	if len(found) != 1 || found[0].Err == nil || !strings.Contains(found[0].Err.Error(), "attune-tunlet-nosuch in "+file+" (not a directory), ") ||
		strings.Contains(found[0].Err.Error(), "nowhere (") {
		t.Errorf("%+v", found)
	}
	if found := Find([]string{file}, nil); len(found) != 1 || found[0].Name != file || found[0].Err == nil {
		t.Errorf("of all tunlets: %+v", found)
	}
}
