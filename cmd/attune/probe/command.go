// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
	"github.com/attune-hpc/attune/internal/config"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/pointtext"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const probeLong = `Probe measures in processes that run already, without tuning anything. A POINT
names a function and says what to take there, in one argument:

  processCommand                          how often it is called, in the program
  libc.so.6:malloc                        how often it is called, in a library
  'libc.so.6:write sum arg2 by arg0'      bytes by file descriptor
  'libc.so.6:open take arg0:str'          each call with its path
  'libc.so.6:open by arg0:str'            how often by path
  'libc.so.6:malloc sum arg0 by stack'    bytes by who asks for them, for a flame graph
  'solver:step%time'                      how long it takes
  'solver:send take msg.count if msg.count > 4K every 100'

docs/reference/probes.md has the whole grammar. A point is served by the cheapest
mechanism that can, and the answer says which, and why no cheaper one. Where a
point would take more than its share of the process' CPU time, less of it is
delivered, and it is told (--budget).

A process that another attune of yours holds already (attune run, attach or
probe) is measured through that one, with its budget: nobody's points disturb
another's. With --session, your processes of a session of a site are meant, on
whatever node they run.`

// Command returns `attune probe`.
func Command(p *cli.Env) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "probe",
		Short: "Measure at any function of running processes",
		Long:  probeLong,
		Example: `  attune probe watch 4711 processCommand
  attune probe add 4711 'libc.so.6:write sum arg2'
  attune probe list
  attune probe remove 4711
  attune probe watch --session solver-k3f2 --host n17 4711 'solver:step%time'`,
	}, newProbeWatch(p), newProbeAdd(p), newProbeList(p), newProbeRemove(p), newProbeHold(p))
}

// probeArguments tells process ids, which come first, from points.
func probeArguments(args []string) (pids []int, points []*attunev1.MeasurePoint, err error) {
	pids, rest, err := probePIDs(args)
	if err != nil {
		return nil, nil, err
	}
	for i, text := range rest {
		point, err := pointtext.Parse(text)
		if err == nil && i > 0 && pointtext.IsClause(text) {
			err = errors.New("it says what to take at a point, and is none")
		}
		if err != nil {
			return nil, nil, exitcode.UsageError(fmt.Errorf("%q: %w", text, err),
				"a point is one argument: put it into quotes; docs/reference/probes.md shows the forms")
		}
		if slices.ContainsFunc(points, func(o *attunev1.MeasurePoint) bool { return o.GetId() == text }) {
			return nil, nil, exitcode.UsageError(fmt.Errorf("%q is given twice", text), "leave one of them out")
		}
		points = append(points, point.Spec)
	}
	return pids, points, nil
}

// probePIDs reads the process ids that arguments begin with, one at least.
func probePIDs(args []string) (pids []int, rest []string, err error) {
	pids, rest, err = procs.Leading(args)
	if err == nil && len(pids) == 0 {
		err = exitcode.UsageError(errors.New("no process is given"), "write: PID... POINT...; `attune ps` shows processes")
	}
	return pids, rest, err
}

// watchFlags are the flags of `attune probe watch`.
type watchFlags struct {
	holdFlags
	in     probePlace
	stacks stackFiles

	json, histogram    bool
	top                int
	interval, duration time.Duration
}

func newProbeWatch(p *cli.Env) *cobra.Command {
	var flags watchFlags
	cmd := &cobra.Command{
		Use:   "watch [flags] PID... [POINT...]",
		Short: "Measure and show what is seen, until interrupted",
		Long: `Watch puts points into processes and shows what they see: counts, sums and
distributions once per interval, single hits as they come. It ends with the
processes, at SIGINT, after --for, or when nobody reads what it writes any more,
and takes the points out again. Without a POINT it shows what attune probe add has
put there. With --follow, points are put into processes that these fork later as
well, but for those that live for some milliseconds only.

What becomes of each point goes to standard error, what is seen to standard
output; with --json, both are JSON documents, one per line.`,
		Example: `  attune probe watch 4711 libc.so.6:malloc
  attune probe watch --interval 10s --histogram 4711 'libc.so.6:read%time'
  attune probe watch --top 10 4711 'libc.so.6:write sum arg2 by arg0'
  attune probe watch --top 10 4711 'libc.so.6:open by arg0:str'
  attune probe watch --for 10s --flame stacks.html 4711 'libc.so.6:malloc sum arg0 by stack'
  attune probe watch --json --for 5s $(pgrep solver) 'solver:step take n' > hits.jsonl`,
		ValidArgsFunction: flags.in.completePoints,
		RunE: func(cmd *cobra.Command, args []string) error {
			pids, points, err := probeArguments(args)
			if err != nil {
				return err
			}
			if flags.interval < 50*time.Millisecond {
				return exitcode.UsageError(fmt.Errorf("an interval of %v is too short", flags.interval), "give 50ms or more")
			}
			if flags.top < 0 {
				return exitcode.UsageError(errors.New("--top is negative"), "give a number of keys such as 10, or 0 for all")
			}
			if flags.duration < 0 {
				return exitcode.UsageError(errors.New("--for is negative"), "give a duration such as 10s")
			}
			return watchProbes(cmd.Context(), p, flags, pids, points)
		},
	}
	cmd.Flags().BoolVar(&flags.json, "json", false, "print JSON documents, one per line")
	cmd.Flags().BoolVar(&flags.histogram, "histogram", false, "show how values are distributed")
	cmd.Flags().IntVar(&flags.top, "top", 0, "of the keys of each point show the `N` with the most hits, on one screen where standard output is a terminal; 0: all")
	flags.stacks.declare(cmd.Flags())
	cmd.Flags().DurationVar(&flags.interval, "interval", time.Second, "how often counts are shown")
	cmd.Flags().DurationVar(&flags.duration, "for", 0, "end this long after the first point is in place; 0: at SIGINT or with the processes")
	flags.declare(cmd)
	flags.in.declare(cmd)
	return cmd
}

// holdFlags say how processes are held that no attune holds yet.
type holdFlags struct {
	outside bool
	follow  bool    // into children
	budget  float64 // percent
}

func (h *holdFlags) declare(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&h.outside, "outside", false, "load nothing into the processes: kernel probes only, which need root")
	cmd.Flags().BoolVarP(&h.follow, "follow", "f", false, "measure in the processes that these fork later as well")
	cmd.Flags().Float64Var(&h.budget, settings.KeyBudget, config.Default().Budget, "most of a process' CPU time that the points may take, in `PERCENT`; beyond it less is measured, 100 is no limit")
}

// config is that of a session which only measures.
func (h *holdFlags) config() (config.Run, error) {
	cfg := config.Default()
	cfg.Mode, cfg.Quiet, cfg.Budget = config.Observe, true, h.budget
	return cfg, cfg.Validate()
}

func newProbeAdd(p *cli.Env) *cobra.Command {
	var asJSON bool
	var hold holdFlags
	var in probePlace
	cmd := &cobra.Command{
		Use:   "add [flags] PID... POINT...",
		Short: "Measure in the background until the points are removed",
		Long: `Add puts points into processes and leaves them there. A process that no attune
of yours holds gets one in the background, which ends with the process or with
its last point. What the points count is shown by list and watch.`,
		Example:           `  attune probe add 4711 libc.so.6:malloc 'libc.so.6:write sum arg2 by arg0'`,
		ValidArgsFunction: in.completePoints,
		RunE: func(cmd *cobra.Command, args []string) error {
			pids, points, err := probeArguments(args)
			if err != nil {
				return err
			}
			if len(points) == 0 {
				return exitcode.UsageError(errors.New("no measure point is given"), "write: attune probe add PID... POINT...")
			}
			return addProbes(cmd.Context(), p, in, pids, points, asJSON, hold)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	hold.declare(cmd)
	in.declare(cmd)
	return cmd
}

func newProbeList(p *cli.Env) *cobra.Command {
	var asJSON bool
	var in probePlace
	cmd := &cobra.Command{
		Use:   "list [PID...]",
		Short: "List the measure points in running processes",
		Long: `List shows the points in processes that an attune of yours holds: those that
were added, those of --probe, and those of tunlets, with the mechanism that
serves each, its cost per hit, and what it has counted so far. Root sees those
in processes that other users' attune holds as well, with their users' names.`,
		Example:           "  attune probe list\n  attune probe list --json 4711 | jq '.[].hits'",
		ValidArgsFunction: in.completeProcesses,
		RunE: func(cmd *cobra.Command, args []string) error {
			var pids []int
			if len(args) > 0 {
				var err error
				if pids, err = procs.Parse(args); err != nil {
					return err
				}
			}
			return listProbes(cmd.Context(), p, in, pids, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	in.declare(cmd)
	return cmd
}

func newProbeRemove(p *cli.Env) *cobra.Command {
	var asJSON bool
	var in probePlace
	cmd := &cobra.Command{
		Use:   "remove [flags] PID... [POINT|ID...]",
		Short: "Take measure points out that were added",
		Long: `Remove takes out what attune probe add has put into processes: the points that
are named, as they were written or by their ids in attune probe list (with a
sign before it: %3), or all of them.`,
		Example:           "  attune probe remove 4711\n  attune probe remove 4711 libc.so.6:malloc\n  attune probe remove 4711 %3",
		ValidArgsFunction: in.completeAdded,
		RunE: func(cmd *cobra.Command, args []string) error {
			pids, names, err := probePIDs(args)
			if err != nil {
				return err
			}
			return removeProbes(cmd.Context(), p, in, pids, names, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	in.declare(cmd)
	return cmd
}
