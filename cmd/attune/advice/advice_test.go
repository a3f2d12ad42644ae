// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/analyzer/store"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestAdviceIsText: neither a program nor a tunlet can have a terminal obey it.
func TestAdviceIsText(t *testing.T) {
	a := store.Advice{
		ID: "aa11bb", Executable: "/tmp/\x1b[2Jsolver", Tunlet: "pipe\x1b[1m", Why: "it is\x1b[31m full\n",
		Changes: []*attunev1.Change{{Knob: "k", Action: &attunev1.Action{Kind: &attunev1.Action_System{
			System: &attunev1.SystemSetting{Name: "pipe\x1b[4m", Value: &attunev1.Value{Kind: &attunev1.Value_Text{Text: "1"}}},
		}}}},
	}
	for name, write := range map[string]func(*cli.Env) error{
		"list": func(p *cli.Env) error { return writeAdvice(p, []store.Advice{a}) },
		"show": func(p *cli.Env) error { return showAdvice(p, a) },
	} {
		var out strings.Builder
		if err := write(&cli.Env{Stdout: &out}); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); strings.Contains(got, "\x1b") || strings.Count(got, "?[") < 3 {
			t.Errorf("%s: %q", name, got)
		}
	}
}
