// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/testing/files"
)

const rules = `
rules:
  - {deny: [set], names: ["libgomp.so*:*"], reason: on trial}
service:
  - {mode: none, users: [4712]}
  - {mode: tune, owners: ["role:user"], executables: ["lmp*"]}
  - {mode: observe, owners: ["role:analyzer"]}
`

func ask(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := Command(&cli.Env{Stdout: &out, Stderr: &out})
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(context.Background())
	return out.String(), err
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	files.Write(t, path, text, 0o666)
	return path
}

func TestCheck(t *testing.T) {
	if out, err := ask(t, "check", write(t, rules)); err != nil || !strings.Contains(out, "can be used") {
		t.Errorf("%s%v", out, err)
	}
	for text, want := range map[string]string{
		"service: [{mode: tun}]":                   "observe, advise, tune",
		"servce: []":                               "servce",
		"service: [{mode: tune, users: [nosuch]}]": "nosuch",
		"rules: [{allow: [jump]}]":                 "jump",
		"a: [":                                     "yaml",
	} {
		if _, err := ask(t, "check", write(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := ask(t, "check", "/nosuch/policy.yaml"); err == nil {
		t.Error("a file that is missing can be used")
	}
}

func TestExplain(t *testing.T) {
	path := write(t, rules)
	for _, tt := range []struct{ args, want string }{
		{"4711 /opt/lmp", "registered by 4711           tune (policy: service rule 2"},
		{"4711 /opt/other", "registered by 4711           no (policy: no rule"},
		{"4711 /opt/other", "registered by the site       observe (policy: service rule 3"},
		{"4712 /opt/lmp", "registered by 4712           no (policy: service rule 1"},
		{"4711 lmp set libgomp.so.1:spin 5", "no (policy: set of libgomp.so.1:spin is denied by rule 1"},
		{"4711 lmp set libm.so.6:x 5", "the action, for 4711         yes"},
		{"--json 4711 lmp", `"mode": "tune"`},
	} {
		out, err := ask(t, append([]string{"explain", "--file", path}, strings.Fields(tt.args)...)...)
		if err != nil || !strings.Contains(out, tt.want) {
			t.Errorf("%s: %s%v, want %q", tt.args, out, err, tt.want)
		}
	}
	for _, args := range []string{"4711", "4711 lmp set", "4711 lmp jump x", "nosuchuser lmp"} {
		if out, err := ask(t, append([]string{"explain", "--file", path}, strings.Fields(args)...)...); err == nil {
			t.Errorf("%s: %s", args, out)
		}
	}
}
