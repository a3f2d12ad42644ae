// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/viper"

	"github.com/attune-hpc/attune/internal/testing/files"
)

// TestSettingsOfAnother: HOME is another user's, whose settings have root write a report over any file.
func TestSettingsOfAnother(t *testing.T) {
	const another = 65534
	file := filepath.Join(t.TempDir(), "attune.yaml")
	files.Write(t, file, "report: /etc/passwd\n", 0o600)
	if err := Merge(viper.New(), file); err != nil {
		t.Errorf("one's own: %v", err)
	}
	if err := os.Chown(file, another, another); err != nil {
		t.Fatal(err)
	}
	v := viper.New()
	if err := Merge(v, file); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") || v.IsSet("report") {
		t.Errorf("another's: %v, report %q", err, v.GetString("report"))
	}
}
