// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/controller/capability"
	"github.com/attune-hpc/attune/dmlib"
	"github.com/attune-hpc/attune/internal/buildinfo"
	"github.com/attune-hpc/attune/internal/rundir"
)

// doctorTimeout bounds all probes together.
const doctorTimeout = 20 * time.Second

// Diagnosis is what doctor finds; the JSON document.
type Diagnosis struct {
	Version    string                  `json:"version"`
	Summary    string                  `json:"summary"`
	Mechanisms []capability.Capability `json:"mechanisms"`
}

// Command returns `attune doctor`.
func Command(p *cli.Env) *cobra.Command {
	var asJSON, services bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what can be done on this machine",
		Long: `Doctor tries every way into a program that attune knows, here and as this
user, and says of each whether it is available, degraded or unavailable, why,
and what would help. Its exit code is 0 whatever it finds.

With --service it says of attuned and the Analyzer that run here which of the
restrictions of their units are in force (docs/security.md), and of the files of
this machine's certificate whether only those can read and write them who should.`,
		Example: `  attune doctor
  attune doctor --service
  attune doctor --json | jq '.mechanisms[] | select(.state != "available")'`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var d *Diagnosis
			var err error
			if services {
				d, err = diagnoseServices()
			} else {
				d, err = diagnose(cmd.Context())
			}
			if err != nil {
				return err
			}
			if !asJSON {
				return d.writeText(p.Stdout)
			}
			return p.WriteJSON(d)
		},
	}
	cmd.Flags().BoolVar(&services, "service", false, "say how the services that run here are restricted")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func diagnose(ctx context.Context) (*Diagnosis, error) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	user := rundir.Current()
	dir, err := rundir.Create(user)
	if err != nil {
		return nil, err
	}
	defer dir.Remove() //nolint:errcheck // the next run removes it
	library, err := dmlib.Install(user.LibraryDir(dir))
	if err != nil {
		library = "" // the probe of preloading says so
	}
	found := capability.Probe(ctx, capability.Options{Library: library})
	return &Diagnosis{Version: buildinfo.Get().Version, Summary: summary(found), Mechanisms: found}, nil
}

// summary says what `attune run` will be able to do.
func summary(found []capability.Capability) string {
	usable := map[string]bool{}
	for _, c := range found {
		usable[c.Name] = c.State != capability.Unavailable
	}
	inside := "watches programs from outside only and can change nothing inside them"
	if usable["preload"] {
		inside = "watches and tunes dynamically linked programs from inside"
	}
	functions := ", but not functions that cannot be intercepted from inside (no uprobes)"
	if usable["uprobe"] {
		functions = ", and any function of any program by uprobes"
	}
	return "attune run " + inside + functions + "."
}

// writeText writes a block for people: one line per mechanism, and below it
// why it is not fully available and what would help.
func (d *Diagnosis) writeText(w io.Writer) error {
	width := 0
	for _, m := range d.Mechanisms {
		width = max(width, len(m.Name))
	}
	for _, m := range d.Mechanisms {
		if _, err := fmt.Fprintf(w, "%-*s  %-11s  %s\n", width, m.Name, m.State, about(m)); err != nil {
			return err
		}
		if m.Remedy == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%*s  %-11s  remedy: %s\n", width, "", "", m.Remedy); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\n%s\n", d.Summary)
	return err
}

// about is a mechanism's reason, or else what was found.
func about(m capability.Capability) string {
	switch {
	case m.Reason == "":
		return m.Detail
	case m.Detail == "":
		return m.Reason
	}
	return m.Reason + " (" + m.Detail + ")"
}
