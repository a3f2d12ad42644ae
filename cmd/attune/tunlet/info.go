// SPDX-License-Identifier: Apache-2.0

package tunlet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/tunletfind"
	"github.com/attune-hpc/attune/internal/exitcode"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/samplefilter"
)

// Info is the JSON document of `attune tunlet info`.
type Info struct {
	Name       string          `json:"name"`
	Version    string          `json:"version"`
	Summary    string          `json:"summary"`
	Path       string          `json:"path"`
	SHA256     string          `json:"sha256"`
	APIVersion string          `json:"api_version"`
	Objective  tunletObjective `json:"objective"`
	// MinGain is the least gain worth keeping, as a ratio, and MaxTries how
	// often something that does not gain is tried; 0: as Attune has them.
	MinGain  float64 `json:"min_gain,omitempty"`
	MaxTries uint32  `json:"max_tries,omitempty"`
	// Wake says when it is started; empty: at once.
	Wake    []string     `json:"wake"`
	Knobs   []tunletKnob `json:"knobs"`
	Options []Option     `json:"options"`
}

type tunletObjective struct {
	Name          string `json:"name"`
	Unit          string `json:"unit"`
	LowerIsBetter bool   `json:"lower_is_better"`
	Description   string `json:"description"`
}

type tunletKnob struct {
	Name string `json:"name"`
	// Is says what changes of it do: all of them, whatever the tunlet proposes.
	Is          string `json:"is"`
	Description string `json:"description"`
	Min         string `json:"min,omitempty"`
	Max         string `json:"max,omitempty"`
}

// Option is one of its options.
type Option struct {
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	Default     string   `json:"default,omitempty"`
	Min         string   `json:"min,omitempty"`
	Max         string   `json:"max,omitempty"`
	Choices     []string `json:"choices,omitempty"`
	Description string   `json:"description"`
	Required    bool     `json:"required,omitempty"`
}

// newTunletInfo collects what is known of a tunlet.
func newTunletInfo(c tunlethost.Candidate, sum string, d *attunev1.DescribeResponse) Info {
	o := d.GetObjective()
	info := Info{
		Name: d.GetName(), Version: d.GetVersion(), Summary: d.GetSummary(), Path: c.Path, SHA256: sum, APIVersion: d.GetApiVersion(),
		Objective: tunletObjective{o.GetName(), o.GetUnit(), o.GetLowerIsBetter(), o.GetDescription()},
		MinGain:   d.GetMinGain(), MaxTries: d.GetMaxTries(),
		Wake: []string{}, Knobs: []tunletKnob{}, Options: []Option{},
	}
	for _, w := range d.GetWake() {
		info.Wake = append(info.Wake, samplefilter.Text(w))
	}
	for _, k := range d.GetKnobs() {
		info.Knobs = append(info.Knobs, tunletKnob{k.GetName(), attunev1.KnobText(k), k.GetDescription(), bound(k.GetMin()), bound(k.GetMax())})
	}
	for _, o := range d.GetOptions() {
		info.Options = append(info.Options, Option{
			o.GetName(), sdk.OptionType(o.GetType()).String(), o.GetDefault(), o.GetMin(), o.GetMax(), o.GetChoices(), o.GetDescription(), o.GetRequired(),
		})
	}
	return info
}

// bound is a knob's bound; empty: none.
func bound(v *attunev1.Value) string {
	if v == nil {
		return ""
	}
	return attunev1.ValueText(v)
}

// write writes it for people.
func (i Info) write(to io.Writer) error {
	better := "more is better"
	if i.Objective.LowerIsBetter {
		better = "less is better"
	}
	w := cli.Table(to)
	fmt.Fprintf(w, "%s %s\t%s\n", i.Name, i.Version, i.Summary)
	fmt.Fprintf(w, "file\t%s\n", i.Path)
	fmt.Fprintf(w, "sha256\t%s\n", i.SHA256)
	fmt.Fprintf(w, "API version\t%s\n", i.APIVersion)
	fmt.Fprintf(w, "judged by\t%s in %s, %s: %s\n", i.Objective.Name, i.Objective.Unit, better, i.Objective.Description)
	if len(i.Wake) == 0 {
		fmt.Fprintln(w, "started\tat once")
	}
	for _, text := range i.Wake {
		fmt.Fprintf(w, "started\tby a process with %s\n", text)
	}
	for _, k := range i.Knobs {
		is := ""
		if k.Is != "setting "+k.Name {
			is = ", " + k.Is
		}
		fmt.Fprintf(w, "knob\t%s%s%s: %s\n", k.Name, is, between(k.Min, k.Max), k.Description)
	}
	for _, o := range i.Options {
		fmt.Fprintf(w, "option\t%s, %s%s: %s\n", o.Name, o.Type, o.limits(), o.Description)
	}
	return w.Flush()
}

// limits says which values an option takes.
func (o Option) limits() string {
	text := between(o.Min, o.Max)
	if len(o.Choices) > 0 {
		text += ", one of " + strings.Join(o.Choices, ", ")
	}
	if o.Default != "" {
		text += ", else " + o.Default
	}
	if o.Required {
		text += ", needed"
	}
	return text
}

func between(least, most string) string {
	switch {
	case least != "" && most != "":
		return fmt.Sprintf(", %s to %s", least, most)
	case least != "":
		return ", at least " + least
	case most != "":
		return ", at most " + most
	}
	return ""
}

// askTunlet asks one tunlet, by its name, what it is.
func askTunlet(ctx context.Context, name string, dirs []string, asking tunlethost.Options) (Info, error) {
	if err := tunletfind.Check([]string{name}, dirs); err != nil {
		return Info{}, err
	}
	return ask(ctx, tunlethost.Find(dirs, []string{name})[0], asking)
}

func ask(ctx context.Context, c tunlethost.Candidate, asking tunlethost.Options) (Info, error) {
	d, sum, err := tunlethost.Describe(ctx, c, asking)
	if err != nil {
		return Info{}, &exitcode.Error{
			Code: exitcode.Failure, Err: fmt.Errorf("tunlet %s: %w", c.Name, err), Remedy: cmp.Or(remedyFor(c), "it cannot be used before that is mended"),
		}
	}
	return newTunletInfo(c, sum, d), nil
}

// remedyFor is what to do about a tunlet that is not trusted; its own error has
// the command.
func remedyFor(c tunlethost.Candidate) string {
	if errors.As(c.Err, new(*tunlethost.UntrustedError)) {
		return "a tunlet must belong to root or to you, and nobody else may write to it or its directory"
	}
	return ""
}

func newTunletInfoCommand(p *cli.Env) *cobra.Command {
	var dirs []string
	asJSON := false
	cmd := &cobra.Command{
		Use:   "info [flags] NAME",
		Short: "Show what a tunlet watches for, may change, and can be told",
		Long: `Info shows a tunlet's own account of itself: what problem it solves, which figure
it is judged by, what it waits for before it is started, the knobs that it may
change, and its options, which are set in a configuration file:

  tunlets:
    malloc: {memory_bytes: 64GiB}

A tunlet that is not known yet is started for a moment to be asked.`,
		Example: "  attune tunlet info malloc\n  attune tunlet info --json malloc",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exitcode.UsageError(fmt.Errorf("the name of one tunlet is needed"), "`attune tunlet list` shows them")
			}
			info, err := askTunlet(cmd.Context(), args[0], tunletfind.Dirs(dirs), tunletfind.Asking())
			if err != nil {
				return err
			}
			if !asJSON {
				return info.write(p.Stdout)
			}
			return p.WriteJSON(info)
		},
		ValidArgsFunction: tunletfind.Complete(&dirs),
	}
	tunletfind.DirFlag(cmd, &dirs)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write a JSON document")
	return cmd
}
