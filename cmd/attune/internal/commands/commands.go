// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/account"
	"github.com/attune-hpc/attune/cmd/attune/advice"
	"github.com/attune-hpc/attune/cmd/attune/analyzer"
	"github.com/attune-hpc/attune/cmd/attune/archive"
	"github.com/attune-hpc/attune/cmd/attune/attach"
	"github.com/attune-hpc/attune/cmd/attune/cert"
	"github.com/attune-hpc/attune/cmd/attune/changes"
	"github.com/attune-hpc/attune/cmd/attune/doctor"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/off"
	"github.com/attune-hpc/attune/cmd/attune/pack"
	"github.com/attune-hpc/attune/cmd/attune/policy"
	"github.com/attune-hpc/attune/cmd/attune/probe"
	"github.com/attune-hpc/attune/cmd/attune/ps"
	"github.com/attune-hpc/attune/cmd/attune/report"
	"github.com/attune-hpc/attune/cmd/attune/run"
	"github.com/attune-hpc/attune/cmd/attune/site"
	"github.com/attune-hpc/attune/cmd/attune/tune"
	"github.com/attune-hpc/attune/cmd/attune/tunlet"
	"github.com/attune-hpc/attune/internal/buildinfo"
	"github.com/attune-hpc/attune/internal/exitcode"
)

// New returns the tree of all commands of attune, for one call of it. Their output goes to
// the writers of p; nothing runs before the tree is executed.
func New(p *cli.Env) *cobra.Command {
	root := cli.Group(&cobra.Command{
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
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true, // the reference is the same on every day
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return wrongFlags(cmd, cmd.ValidateFlagGroups()) // cobra's own check has no exit code
		},
	})
	root.Version = versionText()
	root.SetVersionTemplate("{{.Version}}\n")
	root.InitDefaultVersionFlag() // now, for the reference
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	root.SetFlagErrorFunc(wrongFlags)
	reports := report.Command(p)
	reports.AddCommand(site.Gains(p))
	root.AddCommand(
		run.Command(p),
		account.Command(p),
		attach.Command(p),
		ps.Command(p),
		probe.Command(p),
		tune.Command(p),
		changes.Command(p),
		changes.Undoing(p),
		advice.Command(p),
		archive.Command(p),
		off.Command(p),
		off.On(p),
		doctor.Command(p),
		reports,
		tunlet.Command(p),
		cert.Command(p),
		pack.Command(p),
		pack.Unpack(p),
		pack.Packed(p),
		policy.Command(p),
		site.Session(p),
		site.Node(p),
		analyzer.Command(p),
		newCompletion(p),
		newVersion(p),
	)
	refuseTopics(root)
	return root
}

// wrongFlags gives an error about flags the exit code, and says where to look.
func wrongFlags(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	return exitcode.UsageError(err, fmt.Sprintf("see `%s --help`", cmd.CommandPath()))
}

// refuseTopics has cobra's help refuse what is no command.
func refuseTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			cmd.Args = func(_ *cobra.Command, args []string) error {
				found, rest, err := root.Find(args)
				return errors.Join(err, cli.NoSuchCommand(found, rest))
			}
		}
	}
}

func newVersion(p *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cli.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(p.Stdout, versionText())
			return err
		},
	}
}

// versionText is what `attune version` and `attune --version` print.
func versionText() string {
	info := buildinfo.Get()
	return fmt.Sprintf("attune %s (%s, %s)", info.Version, info.Go, info.Platform)
}
