// SPDX-License-Identifier: Apache-2.0

package tune

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/controller/actuate/setting"
	"github.com/attune-hpc/attune/controller/actuate/setting/mpi"
	"github.com/attune-hpc/attune/controller/actuate/system"
	"github.com/attune-hpc/attune/internal/exitcode"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const tuneLong = `Tune changes what the operating system keeps for running processes: options of
their sockets, the size of their pipes, where and how their threads run, their
limits, their cgroup; and settings of their libraries: malloc, stdio, OpenMP,
Python. They need not have been started by attune. Nothing of what the operating
system keeps stops them; a setting that takes a call of the library stops one
thread for a moment. The commands below it change what is inside: variables,
functions and their calls, libraries.

Each NAME=VALUE is checked, written down with the old value, made, and read
back; if one cannot be made in one process, all are taken back. A change
applies to every thread, socket or pipe that there is; NAME@NUMBER=VALUE to one
thread or descriptor. It stays when the command has ended, until attune undo;
only one that makes a stream hold back more than before keeps the command
running, which sees to it that nobody sees output late.

mpi_t.VARIABLE=VALUE changes a control variable of MPI (MPI_T) in the ranks of one
job at the same call of a collective operation: name all ranks, or the launcher. It
is done in all of them or in none (docs/reference/settings.md).
attune changes lists what is in force, attune tune --list what can be changed.

Changes that you could not take back yourself need --no-undo, and those of a cgroup
that holds other processes than the named ones and their descendants need --shared.
Only your own processes can be changed, by root all, and what
the site's policy allows (docs/reference/policy.md).`

const tuneExample = `  attune tune 4711 thread.affinity=0-3 thread.nice=5
  attune tune 4711 socket.tcp_nodelay=1 socket.so_rcvbuf@7=auto
  attune tune --dry-run 4711 4712 limit.nofile=65536
  attune tune 4711 pipe.size=1M
  attune tune 4711 python.gc.threshold0=200000 gomp.spin_count=0
  attune tune 4711 glibc.stdio.size@1=1M
  attune tune "$(pgrep mpirun)" mpi_t.MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM=pairwise`

// Flags are the flags of `attune tune`.
type Flags struct {
	DryRun, JSON, NoUndo, shared, list bool

	wait time.Duration
}

// Command returns `attune tune`.
func Command(p *cli.Env) *cobra.Command {
	var flags Flags
	cmd := &cobra.Command{
		Use:               "tune [flags] PID... NAME[@NUMBER]=VALUE...",
		Short:             "Change running processes, and what the operating system keeps for them",
		Long:              tuneLong,
		Example:           tuneExample,
		ValidArgsFunction: completeTune,
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.list {
				return listKnobs(p, flags.JSON)
			}
			pids, settings, err := tuneArguments(args)
			if err != nil {
				return exitcode.UsageError(err, "see `attune tune --help` and `attune tune --list`")
			}
			return tune(cmd.Context(), p, flags, ranksOf(pids, settings), knobRequests(settings, flags.wait))
		},
	}
	cmd.PersistentFlags().BoolVar(&flags.DryRun, "dry-run", false, "say what would be changed, how, and whether it can be undone; change nothing")
	cmd.PersistentFlags().BoolVar(&flags.JSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&flags.NoUndo, "no-undo", false, "make changes that you could not take back yourself")
	cmd.Flags().BoolVar(&flags.shared, "shared", false, "change a cgroup also if it holds other processes")
	cmd.Flags().DurationVar(&flags.wait, "wait", 10*time.Second, "how long to wait for all ranks of an MPI job to come to one call, `TIME` as 500ms, 2s, 1m")
	cmd.Flags().BoolVar(&flags.list, "list", false, "list what can be changed")
	for _, action := range tuneActions() {
		cmd.AddCommand(newTuneAction(p, &flags, action))
	}
	return cmd
}

// ranksOf returns the processes that are named, and where control variables of MPI
// are all that is changed the ranks in the place of their launcher.
func ranksOf(pids []int, settings []assignment) (all []int) {
	if slices.ContainsFunc(settings, func(s assignment) bool { return !s.ofMPI }) {
		return pids
	}
	for _, pid := range pids {
		if ranks := mpi.RanksBelow(pid); len(ranks) > 0 {
			all = append(all, ranks...)
		} else {
			all = append(all, pid)
		}
	}
	return all
}

// knobRequests asks for settings of the operating system and of libraries; wait is
// for those of MPI.
func knobRequests(settings []assignment, wait time.Duration) (requests []Request) {
	for _, s := range settings {
		if s.library || s.ofMPI {
			r := libraryRequest(s)
			if s.ofMPI {
				r.At = &attunev1.SafePoint{Kind: attunev1.SafePoint_KIND_AGREED_CALL, TimeoutNanos: wait.Nanoseconds()}
			}
			requests = append(requests, r)
			continue
		}
		set := &attunev1.SystemSetting{Name: s.name, Value: textValue(s.value)}
		if s.on != system.Everywhere {
			on := int32(s.on)
			set.On = &on
		}
		requests = append(requests, Request{Name: s.name, Action: &attunev1.Action{Kind: &attunev1.Action_System{System: set}}})
	}
	return requests
}

// libraryRequest asks for a named setting, which has been checked, or for a control
// variable of MPI, whose values the library knows.
func libraryRequest(s assignment) Request {
	value := &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: s.number}}
	if s.ofMPI {
		value = textValue(s.value)
	}
	return Request{Name: s.name, OfMPI: s.ofMPI, Action: &attunev1.Action{Kind: &attunev1.Action_Setting{
		Setting: &attunev1.NamedSetting{Name: s.name, Value: value},
	}}}
}

// MpiPrefix begins the names of MPI's control variables.
const MpiPrefix = "mpi_t."

// cutPrefixFold is strings.CutPrefix for a prefix in any case; what follows it keeps
// its own.
func cutPrefixFold(text, prefix string) (rest string, ok bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return text, false
	}
	return text[len(prefix):], true
}

func textValue(text string) *attunev1.Value {
	return &attunev1.Value{Kind: &attunev1.Value_Text{Text: text}}
}

// assignment is one NAME[@NUMBER]=VALUE.
type assignment struct {
	name, value string
	on          int
	library     bool  // a named setting, not a knob of the operating system
	number      int64 // of the value of a named setting
	ofMPI       bool  // a control variable of MPI
}

// tuneArguments tells process ids from settings, and checks both as far as
// that goes without the processes.
func tuneArguments(args []string) (pids []int, settings []assignment, err error) {
	var words []string
	for _, arg := range args {
		name, value, isSetting := strings.Cut(arg, "=")
		if !isSetting {
			words = append(words, arg)
			continue
		}
		s, err := parseSetting(name, value)
		if err != nil {
			return nil, nil, err
		}
		settings = append(settings, s)
	}
	pids, rest, err := procs.Leading(words)
	switch {
	case err != nil:
		return nil, nil, err
	case len(rest) > 0:
		return nil, nil, fmt.Errorf("%q is neither a process id nor NAME=VALUE", rest[0])
	case len(pids) == 0:
		return nil, nil, errNoProcess
	case len(settings) == 0:
		return nil, nil, errors.New("nothing to change given, write NAME=VALUE")
	}
	return pids, settings, repeated(settings)
}

func parseSetting(name, value string) (assignment, error) {
	if named, ok := setting.Lookup(strings.ToLower(name)); ok {
		number, err := named.Parse(value)
		return assignment{name: named.Name, value: value, on: system.Everywhere, library: true, number: number}, err
	}
	if variable, ok := cutPrefixFold(name, MpiPrefix); ok && variable != "" && value != "" {
		return assignment{name: MpiPrefix + variable, value: value, on: system.Everywhere, ofMPI: true}, nil
	}
	s := assignment{name: name, value: value, on: system.Everywhere}
	if before, number, found := strings.Cut(name, "@"); found {
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil || n < 0 {
			return s, fmt.Errorf("%q: %q is no thread or descriptor number", name, number)
		}
		s.name, s.on = before, int(n)
	}
	knob, err := system.Validate(system.Request{Knob: s.name, Value: value, On: s.on})
	switch {
	case err == nil:
		s.name = knob.Name
	case errors.Is(err, system.ErrUnknownKnob):
		err = system.UnknownKnob(s.name, setting.Changeable())
	}
	return s, err
}

// repeated refuses what would be changed twice by one command.
func repeated(settings []assignment) error {
	for i, s := range settings {
		if slices.ContainsFunc(settings[:i], func(o assignment) bool { return o.name == s.name && o.on == s.on }) {
			return fmt.Errorf("%s is given twice", s.name)
		}
	}
	return nil
}

// completeTune completes process ids, names of knobs and known values.
func completeTune(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	none := cobra.ShellCompDirectiveNoFileComp
	if name, _, found := strings.Cut(word, "="); found {
		return knobValues(name), none
	}
	if len(args) == 0 {
		return procs.CompleteOwn(), none
	}
	var names []string
	for _, k := range system.Knobs() {
		names = append(names, fmt.Sprintf("%s=\t%s", k.Name, k.Values))
	}
	for _, s := range setting.All() {
		names = append(names, fmt.Sprintf("%s=\t%s", s.Name, s.Values()))
	}
	return names, none | cobra.ShellCompDirectiveNoSpace
}

func knobValues(name string) []string {
	bare, _, _ := strings.Cut(name, "@")
	for _, k := range system.Knobs() {
		if !strings.EqualFold(k.Name, bare) {
			continue
		}
		values := make([]string, len(k.Examples))
		for i, example := range k.Examples {
			values[i] = name + "=" + example
		}
		return values
	}
	var values []string
	if s, ok := setting.Lookup(strings.ToLower(name)); ok {
		for _, word := range s.Words() {
			values = append(values, name+"="+word)
		}
	}
	return values
}
