// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/internal/buildinfo"
	"github.com/attune-hpc/attune/internal/exitcode"
)

// newRoot builds the whole command tree.
func newRoot(p *process) *cobra.Command {
	root := &cobra.Command{
		Use:   "attune",
		Short: "Make programs faster while they run",
		Long: `Attune starts a program unchanged, watches it, recognises what slows it down,
changes that inside the running process, and keeps the change only if the
program got faster.`,
		Example: `  attune run -- ./my-program input.dat
  attune run -- mpirun -np 64 ./solver
  attune attach 4711
  attune tune 4711 thread.affinity=0-3 socket.tcp_nodelay=1
  attune doctor`,
		SilenceErrors:              true,
		SilenceUsage:               true,
		Args:                       noSuchCommand,
		SuggestionsMinimumDistance: 2,
		DisableAutoGenTag:          true, // the reference is the same on every day
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.Version = versionText()
	root.SetVersionTemplate("{{.Version}}\n")
	root.InitDefaultVersionFlag() // now, for the reference
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exitcode.UsageError(err, fmt.Sprintf("see `%s --help`", cmd.CommandPath()))
	})
	root.AddCommand(
		newRun(p),
		newAttach(p),
		newPS(p),
		newProbe(p),
		newTune(p),
		newChanges(p),
		newUndo(p),
		newAdvice(p),
		newOff(p),
		newOn(p),
		newDoctor(p),
		newReport(p),
		newTunlet(p),
		newCert(p),
		newPack(p),
		newUnpack(p),
		newPacked(p),
		newSiteSession(p),
		newNode(p),
		newAnalyzer(p),
		newVersion(p),
	)
	return root
}

// noSuchCommand refuses a word that is no command, with what was perhaps meant.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	remedy := fmt.Sprintf("see `%s --help`", cmd.CommandPath())
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		remedy = fmt.Sprintf("did you mean `%s %s`?", cmd.CommandPath(), near[0])
	} else if !cmd.HasParent() {
		remedy += "; to run a program: attune run -- " + args[0]
	}
	return exitcode.UsageError(fmt.Errorf("unknown command %q", args[0]), remedy)
}

// noArguments refuses arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return exitcode.UsageError(errors.New("unexpected argument "+args[0]),
		fmt.Sprintf("see `%s --help`", cmd.CommandPath()))
}

func newVersion(p *process) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(p.stdout, versionText())
			return err
		},
	}
}

// versionText is what `attune version` and `attune --version` print.
func versionText() string {
	info := buildinfo.Get()
	return fmt.Sprintf("attune %s (%s, %s)", info.Version, info.Go, info.Platform)
}
