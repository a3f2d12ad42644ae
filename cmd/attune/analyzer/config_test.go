// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/viper"
)

// A service reads no file that others may have written.
func TestServiceReadsWhatIsOurs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "analyzer.yaml")
	if err := os.WriteFile(path, []byte("linger: 5s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	v := viper.New()
	if err := readService(v, path, true, []string{keyLinger}); err != nil || v.GetString(keyLinger) != "5s" {
		t.Errorf("%v, %v", v.AllSettings(), err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	v = viper.New()
	if err := readService(v, path, true, []string{keyLinger}); err == nil || !strings.Contains(err.Error(), "may be written by others") || v.IsSet(keyLinger) {
		t.Errorf("%v, %v", v.AllSettings(), err)
	}
	for _, none := range []string{os.DevNull, path + ".none"} {
		if err := readService(v, none, false, nil); err != nil {
			t.Errorf("%s: %v", none, err)
		}
	}
}
