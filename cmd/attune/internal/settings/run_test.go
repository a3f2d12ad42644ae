// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/internal/configfile"
	"github.com/attune-hpc/attune/internal/config"
	"github.com/attune-hpc/attune/internal/exitcode"
)

// loadWith loads a configuration from files (name to text, in the order in
// which they override), environment and arguments.
func loadWith(t *testing.T, files []string, env map[string]string, args ...string) (config.Run, error) {
	t.Helper()
	for name, value := range env {
		t.Setenv(name, value)
	}
	var paths []string
	for i, text := range files {
		path := filepath.Join(t.TempDir(), string(rune('a'+i))+".yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	RunFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return Load(flags, append(paths, "/nowhere/attune.yaml"))
}

func TestPrecedence(t *testing.T) {
	tests := []struct {
		name  string
		files []string
		env   map[string]string
		args  []string
		want  string // mode
	}{
		{"default", nil, nil, nil, config.Tune},
		{"file", []string{"mode: observe"}, nil, nil, config.Observe},
		{"later file", []string{"mode: observe", "mode: advise"}, nil, nil, config.Advise},
		{"later file that is silent", []string{"mode: observe", "quiet: true"}, nil, nil, config.Observe},
		{"environment", []string{"mode: observe"}, map[string]string{"ATTUNE_MODE": "advise"}, nil, config.Advise},
		{"flag", []string{"mode: tune"}, map[string]string{"ATTUNE_MODE": "advise"}, []string{"--mode", "observe"}, config.Observe},
		{"flag with the default's value", []string{"mode: observe"}, nil, []string{"--mode=tune"}, config.Tune},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := loadWith(t, tt.files, tt.env, tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			if got.Mode != tt.want {
				t.Errorf("mode %q, want %q", got.Mode, tt.want)
			}
		})
	}
}

func TestEverySettingHasEveryWayIn(t *testing.T) {
	want := config.Run{
		Mode: config.Advise, Tunlets: []string{"a", "b"}, TunletDirs: []string{"/d"},
		TunletMB: 64, TunletCPU: 50, Probes: []string{"o:f"}, Budget: 0.5, Report: "r.json", Timeline: "t", Quiet: true, NoBPF: true, LogFile: "l", LogLevel: "debug",
	}
	tests := []struct {
		name  string
		files []string
		env   map[string]string
		args  []string
	}{
		{
			"file",
			[]string{"mode: advise\ntunlet: [a, b]\ntunlet-dir: [/d]\ntunlet-memory: 64\ntunlet-cpu: 50\nprobe: ['o:f']\nbudget: 0.5\n" +
				"report: r.json\ntimeline: t\nquiet: true\nno-bpf: true\nlog-file: l\nlog-level: debug\n"},
			nil, nil,
		},
		{
			"environment", nil,
			map[string]string{
				"ATTUNE_MODE": "advise", "ATTUNE_TUNLET": "a,b", "ATTUNE_TUNLET_DIR": "/d",
				"ATTUNE_TUNLET_MEMORY": "64", "ATTUNE_TUNLET_CPU": "50", "ATTUNE_PROBE": "o:f", "ATTUNE_BUDGET": "0.5", "ATTUNE_REPORT": "r.json",
				"ATTUNE_TIMELINE": "t", "ATTUNE_QUIET": "true",
				"ATTUNE_NO_BPF": "1", "ATTUNE_LOG_FILE": "l", "ATTUNE_LOG_LEVEL": "debug",
			},
			nil,
		},
		{
			"flags", nil, nil,
			[]string{
				"--mode=advise", "--tunlet=a", "--tunlet=b", "--tunlet-dir=/d", "--tunlet-memory=64", "--tunlet-cpu=50", "--probe=o:f",
				"--budget=0.5", "--report=r.json", "--timeline=t", "--quiet", "--no-bpf", "--log-file=l", "--log-level=debug",
			},
		},
		{
			"what belongs to a running job is no setting",
			[]string{"mode: advise\ntunlet: [a, b]\ntunlet-dir: [/d]\ntunlet-memory: 64\ntunlet-cpu: 50\nprobe: ['o:f']\nbudget: 0.5\n" +
				"report: r.json\ntimeline: t\nquiet: true\nno-bpf: true\nlog-file: l\nlog-level: debug\n"},
			map[string]string{"ATTUNE_JOB": "x", "ATTUNE_SOCKET": "/y", "ATTUNE": "on"}, nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := loadWith(t, tt.files, tt.env, tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTunletOptions(t *testing.T) {
	got, err := loadWith(t, []string{"tunlets:\n  malloc:\n    max: 3\n", "tunlets:\n  malloc:\n    min: \"1\"\n"}, nil,
		"--tunlet-option=malloc.max=4", "--tunlet-option=workers.round=a=b")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]string{"malloc": {"max": "4", "min": "1"}, "workers": {"round": "a=b"}}
	if diff := cmp.Diff(want, got.TunletOptions); diff != "" {
		t.Error(diff)
	}
}

func TestBadConfiguration(t *testing.T) {
	tests := []struct{ name, file, want string }{
		{"syntax", "mode: [", "a.yaml"},
		{"second document", "mode: tune\n---\nmode: observe\n", "line 2: a second document begins here"},
		{"unknown key", "mod: tune", `unknown key "mod"`},
		{"key below one", "report:\n  file: x\n", `unknown key "report.file"`},
		{"bad value", "mode: fast", "observe, advise, tune"},
		{"options of no tunlet", "tunlets: 3", "tunlets"},
		{"options that are none", "tunlets:\n  malloc: 3\n", "write a map of settings"},
		{"option of no tunlet", "tunlet-option: [max=3]", `"max=3" sets no option; write TUNLET.OPTION=VALUE`},
		{"option without value", "tunlet-option: [malloc.max]", `"malloc.max" sets no option; write TUNLET.OPTION=VALUE`},
		{"no truth value", "quiet: perhaps", `setting quiet: "perhaps" makes no sense; write true or false`},
		{"a list of modes", "mode: [tune]", "setting mode: \"[tune]\" makes no sense; write one value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := loadWith(t, []string{tt.file}, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v does not say %q in one line", err, tt.want)
			}
			if got := exitcode.Of(err); got != exitcode.Usage {
				t.Errorf("exit code %d", got)
			}
		})
	}
}

func TestBadEnvironment(t *testing.T) {
	_, err := loadWith(t, nil, map[string]string{"ATTUNE_QUIET": "banana"})
	if exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "write true or false") {
		t.Errorf("error %v", err)
	}
}

func TestFilesBelow(t *testing.T) {
	etc, user := t.TempDir(), t.TempDir()
	for _, name := range []string{etc + "/attune.d/20.yaml", etc + "/attune.d/10.yaml", etc + "/attune.d/x.txt", user + "/attune.d/05.yaml"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		etc + "/attune.yaml", etc + "/attune.d/10.yaml", etc + "/attune.d/20.yaml",
		user + "/attune.yaml", user + "/attune.d/05.yaml",
	}
	if diff := cmp.Diff(want, filesBelow([]string{etc, user})); diff != "" {
		t.Error(diff)
	}
}

func TestJoin(t *testing.T) {
	tests := []struct {
		name           string
		env, set, want []string
	}{
		{"added", []string{"A=1"}, []string{"B=2"}, []string{"A=1", "B=2"}},
		{"replaced where it stands", []string{"A=1", "B=2"}, []string{"A=3"}, []string{"A=3", "B=2"}},
		{"prefix of a name", []string{"AB=1"}, []string{"A=2"}, []string{"AB=1", "A=2"}},
		{"others are left as they are", []string{"X", "A=1", "A=1", "=C"}, nil, []string{"X", "A=1", "A=1", "=C"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, cli.Set(tt.env, tt.set)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPageNamesEveryKey: the page of attune.yaml has each key, and none that is not known.
func TestPageNamesEveryKey(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/reference/attune-yaml.md")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllSubmatch(page, -1) {
		for _, key := range strings.Split(string(row[1]), ", ") {
			named = append(named, strings.Trim(key, "`"))
		}
	}
	known := slices.DeleteFunc(runKeys(), func(key string) bool { return strings.HasSuffix(key, configfile.Below) })
	slices.Sort(named)
	slices.Sort(known)
	if diff := cmp.Diff(known, named); diff != "" {
		t.Error(diff)
	}
}
