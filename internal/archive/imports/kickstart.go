// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
)

const kickstartRemedy = "import a record of pegasus-kickstart, schema 3.0; with -z and -Z it writes what is no YAML (plain and -t are good)"

// invocation is what is used of a record.
type invocation struct {
	Version        string            `yaml:"version"`
	Start          time.Time         `yaml:"start"`
	Duration       float64           `yaml:"duration"`
	Transformation string            `yaml:"transformation"`
	Derivation     string            `yaml:"derivation"`
	Hostname       string            `yaml:"hostname"`
	CWD            string            `yaml:"cwd"`
	Jobs           map[string]string `yaml:"jobids"`
	Machine        struct {
		Release string `yaml:"uname_release"`
		CPUs    int    `yaml:"cpu_count"`
	} `yaml:"machine"`
	Main *struct {
		Duration float64 `yaml:"duration"`
		Usage    struct {
			User        *float64 `yaml:"utime"`
			System      *float64 `yaml:"stime"`
			Resident    *uint64  `yaml:"maxrss"` // kB
			Minor       *uint64  `yaml:"minflt"`
			Major       *uint64  `yaml:"majflt"`
			Voluntary   *uint64  `yaml:"nvcsw"`
			Involuntary *uint64  `yaml:"nivcsw"`
		} `yaml:"usage"`
		Status struct {
			Code   *int   `yaml:"regular_exitcode"`
			Signal *int   `yaml:"signalled_signal"`
			Name   string `yaml:"signalled_name"`
			Error  string `yaml:"failure_error"`
		} `yaml:"status"`
		Executable struct {
			Name string `yaml:"file_name"`
		} `yaml:"executable"`
		Arguments []string `yaml:"argument_vector"`
		Processes []any    `yaml:"procs"`
	} `yaml:"mainjob"`
}

// yamlLine finds line and complaint in an error of the YAML package.
var yamlLine = regexp.MustCompile(`line (\d+): (.*)`)

// readKickstart reads records, which are elements of lists.
func readKickstart(f File) (result Result, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(f.Text))
	for {
		var records []yaml.Node
		err := decoder.Decode(&records)
		if errors.Is(err, io.EOF) {
			return result, nil
		}
		if err != nil {
			return Result{}, f.failYAML(0, err)
		}
		for i := range records {
			var r invocation
			if err := records[i].Decode(&r); err != nil {
				return Result{}, f.failYAML(records[i].Line, err)
			}
			if !strings.HasPrefix(r.Version, "3.") || r.Start.IsZero() {
				return Result{}, f.fail(records[i].Line, kickstartRemedy, "version %q or start is not that of a record", r.Version)
			}
			if r.Main == nil {
				result.skip("has no main job")
				continue
			}
			result.Tasks = append(result.Tasks, r.task())
		}
	}
}

// failYAML fails with the first thing that the YAML package complains of.
func (f File) failYAML(line int, err error) error {
	text := err.Error()
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = m[2]
	}
	return f.fail(line, kickstartRemedy, "not the YAML of a record: %s", text)
}

func (r *invocation) task() *archive.Task {
	t := newTask("kickstart")
	t.Name, t.Origin = r.Transformation, r.Derivation
	if ids := slices.Sorted(maps.Keys(r.Jobs)); len(ids) > 0 {
		t.Job = r.Jobs[ids[0]]
	}
	m, a := r.Main, &t.Account
	a.Command = append([]string{m.Executable.Name}, m.Arguments...)
	if m.Executable.Name == "" {
		a.Command = nil
		t.Name = cmp.Or(t.Name, "kickstart")
	}
	a.Directory, a.Host = r.CWD, account.Host{Name: r.Hostname, Kernel: r.Machine.Release, CPUs: r.Machine.CPUs}
	a.Start, a.WallSeconds = r.Start.UTC(), m.Duration
	a.End = a.Start.Add(seconds(max(r.Duration, m.Duration)))
	u := m.Usage
	setCPU(a, u.User, u.System, nil)
	if u.Resident != nil {
		a.Memory.Resident = new(*u.Resident * 1024)
	}
	a.Faults = account.Faults{Minor: u.Minor, Major: u.Major}
	a.ContextSwitches = account.Switches{Voluntary: u.Voluntary, Involuntary: u.Involuntary}
	if n := uint64(len(m.Processes)); n > 0 {
		a.Processes.Total = &n
	}
	switch s := m.Status; {
	case s.Code != nil:
		a.Exit = account.Exit{Type: account.ExitNormal, Code: s.Code}
	case s.Signal != nil:
		a.Exit = account.Exit{Type: account.ExitSignal, Signal: s.Name}
		if s.Name == "" {
			a.Exit.Signal = fmt.Sprintf("signal %d", *s.Signal)
		}
	default:
		a.Exit = account.Exit{Type: account.ExitLost}
	}
	measured(t, account.Exact, "", "wall_seconds", "cpu_seconds", "user_seconds", "system_seconds", "cores_average", "faults.minor", "faults.major",
		"context_switches.voluntary", "context_switches.involuntary", "processes.total")
	measured(t, account.Bound, largestOnly, "memory.resident_peak_bytes")
	return t
}
