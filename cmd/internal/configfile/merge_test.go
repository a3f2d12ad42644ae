// SPDX-License-Identifier: Apache-2.0

package configfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/viper"

	"github.com/attune-hpc/attune/internal/testing/files"
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
	if err := errors.Join(os.Chmod(path, 0o600), os.Mkdir(path+".d", 0o755), os.Symlink("nowhere", path+".d/a.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := MergeService(viper.New(), path, true, known); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a link that leads nowhere: %v", err)
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
		linger     string
		tunlets    map[string]any
		refused    string
	}{
		{"nothing", "", "5s", nil, ""},
		{"another value", "linger: 6s", "6s", nil, ""},
		{"no value", "linger:", "", nil, ""},
		{"an unknown key", "lingre: 6s", "5s", nil, `b.yaml: unknown key "lingre"`},
		{"a key below one", "linger:\n  more: 6s", "5s", nil, `unknown key "linger.more"`},
		{"a key below one that has some", "tunlets:\n  gc: {threshold: 2}", "5s", map[string]any{"threshold": 2, "pause": 3}, ""},
		{"by its path", "tunlets.gc.threshold: 2", "5s", map[string]any{"threshold": 2, "pause": 3}, ""},
		{"without a value there", "tunlets:\n  gc: {threshold: }", "5s", nil, ""},
		{"no tunlets", "tunlets:", "5s", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, known := viper.New(), []string{"linger", "tunlets", "tunlets" + Below}
			if err := MergeText(v, "a.yaml", []byte("linger: 5s\ntunlets: {gc: {threshold: 1, pause: 3}}"), known); err != nil {
				t.Fatal(err)
			}
			err := MergeText(v, "b.yaml", []byte(tt.text), known)
			if refused := err != nil; refused != (tt.refused != "") || refused && !strings.Contains(err.Error(), tt.refused) {
				t.Errorf("%v, want %q", err, tt.refused)
			}
			if got := v.GetString("linger"); got != tt.linger {
				t.Errorf("linger %q, want %q", got, tt.linger)
			}
			if tt.tunlets == nil { // as it was
				tt.tunlets = map[string]any{"threshold": 1, "pause": 3}
			}
			if diff := cmp.Diff(map[string]any{"gc": tt.tunlets}, v.GetStringMap("tunlets")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
