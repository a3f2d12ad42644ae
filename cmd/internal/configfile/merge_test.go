// SPDX-License-Identifier: Apache-2.0

package configfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/spf13/viper"
)

// A service reads no file that others may have written.
func TestServiceReadsWhatIsOurs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "analyzer.yaml")
	files.Write(t, path, "linger: 5s\n", 0o600)
	known := []string{"linger"}
	v := viper.New()
	if err := MergeService(v, path, true, known); err != nil || v.GetString("linger") != "5s" {
		t.Errorf("%v, %v", v.AllSettings(), err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	v = viper.New()
	if err := MergeService(v, path, true, known); err == nil || !strings.Contains(err.Error(), "may be written by others") || v.IsSet("linger") {
		t.Errorf("%v, %v", v.AllSettings(), err)
	}
	for _, none := range []string{os.DevNull, path + ".none"} {
		if err := MergeService(v, none, false, nil); err != nil {
			t.Errorf("%s: %v", none, err)
		}
	}
}

// TestMergeText: a later file goes over an earlier one, also with a key without a value, and
// has known keys only.
func TestMergeText(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       string // of linger
		refused    string
	}{
		{"nothing", "", "5s", ""},
		{"another value", "linger: 6s", "6s", ""},
		{"no value", "linger:", "", ""},
		{"an unknown key", "lingre: 6s", "5s", `b.yaml: unknown key "lingre"`},
		{"a key below one", "linger:\n  more: 6s", "5s", `unknown key "linger.more"`},
		{"a key below one that has some", "tunlets:\n  malloc: {size: 1}", "5s", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, known := viper.New(), []string{"linger", "tunlets", "tunlets" + Below}
			if err := MergeText(v, "a.yaml", []byte("linger: 5s"), known); err != nil {
				t.Fatal(err)
			}
			err := MergeText(v, "b.yaml", []byte(tt.text), known)
			if refused := err != nil; refused != (tt.refused != "") || refused && !strings.Contains(err.Error(), tt.refused) {
				t.Errorf("%v, want %q", err, tt.refused)
			}
			if got := v.GetString("linger"); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
