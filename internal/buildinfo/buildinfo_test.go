// SPDX-License-Identifier: Apache-2.0

package buildinfo

import (
	"runtime/debug"
	"testing"
)

func TestCommit(t *testing.T) {
	set := func(kv ...string) (s []debug.BuildSetting) {
		for i := 0; i < len(kv); i += 2 {
			s = append(s, debug.BuildSetting{Key: kv[i], Value: kv[i+1]})
		}
		return s
	}
	tests := []struct {
		name     string
		settings []debug.BuildSetting
		want     string
	}{
		{"none", nil, ""},
		{"clean", set("vcs.revision", "abc", "vcs.modified", "false"), "abc"},
		{"dirty", set("vcs.revision", "abc", "vcs.modified", "true"), "abc+dirty"},
		{"dirty without hash", set("vcs.modified", "true"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := commit(tt.settings); got != tt.want {
				t.Errorf("commit = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestGetAlwaysNamesAVersion(t *testing.T) {
	if got := Get(); got.Version == "" || got.Go == "" {
		t.Errorf("incomplete: %+v", got)
	}
}
