// SPDX-License-Identifier: Apache-2.0

package site

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// TestWhereTheAnalyzerIs: of several places the nearest one says where.
func TestWhereTheAnalyzerIs(t *testing.T) {
	const bad = exitcode.Usage
	for _, c := range []struct {
		name        string
		flags       Flags
		environment string // value of ATTUNE_REGISTRY
		own, drop   string // files of the user
		want        Flags
		code        int
	}{
		{name: "nowhere"},
		{name: "a file", own: "analyzer: n1:7117", want: Flags{analyzer: "n1:7117"}},
		{name: "a later file", own: "analyzer: n1:7117", drop: "registry: tls://n2:4222", want: Flags{registry: "tls://n2:4222"}},
		{name: "a later file that says nothing", own: "analyzer: n1:7117", drop: "quiet: true", want: Flags{analyzer: "n1:7117"}},
		{name: "the environment", own: "analyzer: n1:7117", environment: "tls://n2:4222", want: Flags{registry: "tls://n2:4222"}},
		{name: "a flag", flags: Flags{analyzer: "n1:7117"}, environment: "tls://n2:4222", want: Flags{analyzer: "n1:7117"}},
		{name: "two flags", flags: Flags{analyzer: "n1:7117", registry: "tls://n2:4222"}, code: bad},
		{name: "a list", own: "analyzer: [n1:7117]", code: bad},
		{name: "an unknown key", own: "analyser: n1:7117", code: bad},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("XDG_CONFIG_HOME", dir)
			t.Setenv("ATTUNE_ANALYZER", "")
			t.Setenv("ATTUNE_REGISTRY", c.environment)
			for file, text := range map[string]string{"attune.yaml": c.own, "attune.d/more.yaml": c.drop} {
				path := filepath.Join(dir, "attune", file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				files.Write(t, path, text, 0o600)
			}
			got := c.flags
			if err := got.fill(); exitcode.Of(err) != c.code {
				t.Fatal(err)
			} else if err == nil && got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}
