// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/analyzer/service"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
	"github.com/attune-hpc/attune/internal/config"
	"github.com/attune-hpc/attune/internal/exitcode"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const sessionStartLong = `Start registers an application: wherever it runs at the site, now or later, every
execution of it becomes a session, across the nodes that it runs on. It lasts until
attune session stop takes it back.

The application is named by path or base name, where * ? and [] match. A user's own
processes are meant; for admins everybody's, unless --user says whose. What may be
observed or tuned on a node, its policy says; processes that are left alone stand in
attune node list --verbose with the reason.

--objective says what you want to be better, and outranks what tunlets go by. It is
looked for in files that the processes have open and that are their user's, or is the
rate of a function's calls; commands are for attune run, attach and pack.`

// Session returns `attune session`.
func Session(p *cli.Env) *cobra.Command {
	return cli.Group(&cobra.Command{Use: "session", Short: "Observe and tune applications wherever they run at a site"},
		newSessionStart(p), newSessionList(p), newSessionShow(p), newSessionStop(p))
}

func newSessionStart(p *cli.Env) *cobra.Command {
	var at Flags
	var asJSON bool
	r := &attunev1.Registration{}
	cmd := &cobra.Command{
		Use:   "start --app PATH [flags]",
		Short: "Register an application",
		Long:  sessionStartLong,
		Example: "  attune session start --app ./solver\n  attune session start --app lmp --mode advise --batch-only\n" +
			"  attune session start --app ./solver --objective 'output:^step'\n" +
			"  attune session start --app /opt/cfd/bin/cfd --sha256 \"$(sha256sum /opt/cfd/bin/cfd | cut -d' ' -f1)\" --tunlet malloc",
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := meanApplication(r); err != nil {
				return err
			}
			return startSession(cmd.Context(), p, at, r, asJSON)
		},
	}
	flags := cmd.Flags()
	at.Add(flags)
	flags.StringVar(&r.Executable, "app", "", "the application's executable: `PATH` or base name, * ? [] match")
	flags.StringVar(&r.Sha256, "sha256", "", "only an executable with this `CHECKSUM`, as sha256sum prints it")
	flags.StringVar(&r.Arguments, "args", "", "only where the command line matches `RE2`")
	flags.StringVar(&r.User, "user", "", "only processes of `USER`, by name or id; for admins")
	flags.StringVar(&r.Mode, settings.KeyMode, "tune", "what to do: observe, advise or tune")
	flags.StringArrayVar(&r.Tunlets, settings.KeyTunlet, nil, "use only the tunlet `NAME` of those that the Analyzer has; may be repeated")
	flags.StringVar(&r.Objective, settings.KeyObjective, "", "keep a change only if `WHAT` becomes better, for example output:^step or point:FUNCTION (docs/reference/objective.md)")
	flags.BoolVar(&r.BatchOnly, "batch-only", false, "only what the batch system has started")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	cli.MustComplete(cmd, settings.KeyMode, config.Modes)
	return cmd
}

// meanApplication checks what is registered, and makes a relative path absolute:
// it means a file here.
func meanApplication(r *attunev1.Registration) error {
	if r.GetExecutable() == "" {
		return exitcode.UsageError(errors.New("no application is named"), "write: attune session start --app PATH")
	}
	if strings.Contains(r.GetExecutable(), "/") && !filepath.IsAbs(r.GetExecutable()) {
		abs, err := filepath.Abs(r.GetExecutable())
		if err != nil {
			return exitcode.UsageError(err, "name an absolute path")
		}
		r.Executable = abs
	}
	if real, err := filepath.EvalSymlinks(r.GetExecutable()); err == nil && filepath.IsAbs(r.GetExecutable()) {
		r.Executable = real // as the kernel names it
	}
	if err := service.ValidateRegistration(r); err != nil {
		return exitcode.UsageError(err, "see `attune session start --help`")
	}
	return nil
}

func startSession(ctx context.Context, p *cli.Env, at Flags, r *attunev1.Registration, asJSON bool) error {
	done, err := Ask(ctx, at, func(ctx context.Context, c *Client) (*attunev1.StartSessionResponse, error) {
		return c.StartSession(ctx, &attunev1.StartSessionRequest{Registration: r})
	})
	if err != nil {
		return err
	}
	if asJSON {
		return WriteProto(p, done.GetRegistration())
	}
	r = done.GetRegistration()
	fmt.Fprintf(p.Stdout, "%s: executions of %s are %s. See `attune session list`; `attune session stop %s` takes it back.\n",
		r.GetId(), r.GetExecutable(), modeText(r.GetMode()), r.GetId())
	return nil
}

// modeText says what is done in a mode.
func modeText(mode string) string {
	switch mode {
	case "observe":
		return "observed"
	case "advise":
		return "observed, with advice"
	}
	return "tuned"
}

func newSessionList(p *cli.Env) *cobra.Command {
	var at Flags
	var of pick
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "list [flags]",
		Short: "List what is registered, and its sessions",
		Long: `List shows what is registered, and the sessions in the order of their beginning, the
latest last: those that run, with --all also those that have ended in the last seven
days, and those that changed something for as long as their report is kept. A session
is orphaned while its Analyzer is away, and for up to a minute after it is back, until
a node has come back to the session or its processes are known to have ended.`,
		Example: "  attune session list\n  attune session list --job 1347 --all\n  attune session list --all --user alice --since 48h --limit 20\n" +
			"  attune session list --all --json | jq '.sessions[].gain'",
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := Ask(cmd.Context(), at, func(ctx context.Context, c *Client) (*attunev1.ListSessionsResponse, error) {
				return c.ListSessions(ctx, &attunev1.ListSessionsRequest{Ended: all})
			})
			if err != nil {
				return err
			}
			of.narrow(list, time.Now())
			if asJSON {
				return WriteProto(p, list)
			}
			return writeSessions(p, list)
		},
	}
	at.Add(cmd.Flags())
	of.add(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&all, "all", false, "list sessions that have ended too")
	return cmd
}

func newSessionShow(p *cli.Env) *cobra.Command {
	var at Flags
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show [flags] ID",
		Short:   "Show all of a session: what was seen, changed and gained",
		Long:    "Show prints the report of a session as it stands, or of one that has ended. ID is\nthat of the session, or of a registration or of a job of the batch system with one\nsession: 1347, 1347.0, slurm-1347.",
		Example: "  attune session show 1347\n  attune session show solver-k3f2.slurm-4711.0\n  attune session show --json solver-k3f2 > report.json",
		Args:    oneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			shown, err := Ask(cmd.Context(), at, func(ctx context.Context, c *Client) (*attunev1.ShowSessionResponse, error) {
				return c.ShowSession(ctx, &attunev1.ShowSessionRequest{Id: args[0]})
			})
			if err != nil {
				return err
			}
			return showSession(p, shown, asJSON)
		},
	}
	at.Add(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON, as attune run --report does")
	return cmd
}

func showSession(p *cli.Env, shown *attunev1.ShowSessionResponse, asJSON bool) error {
	if len(shown.GetReport()) == 0 {
		return &exitcode.Error{Code: exitcode.Failure, Err: fmt.Errorf("there is no report of session %s any more", shown.GetSession().GetId()),
			Remedy: "it may lie at the Analyzer that the session ended with"}
	}
	if asJSON {
		_, err := p.Stdout.Write(shown.GetReport())
		return err
	}
	var r report.Report
	if err := json.Unmarshal(shown.GetReport(), &r); err != nil {
		return fmt.Errorf("report of the Analyzer: %w", err)
	}
	if err := writeSession(p.Stdout, shown.GetSession()); err != nil {
		return err
	}
	return r.WriteText(p.Stdout, report.TextOptions{Color: os.Getenv("NO_COLOR") == "" && term.IsTerminal(unix.Stdout)})
}

func newSessionStop(p *cli.Env) *cobra.Command {
	var at Flags
	var keep, asJSON bool
	cmd := &cobra.Command{
		Use:   "stop [flags] ID",
		Short: "End a session, or take a registration back with all of its sessions",
		Long: `Stop ends a session: what was changed is undone, and its execution is left alone for a
week, with what begins in it later, as when the job is requeued.
ID may be that of a job of the batch system, as for attune session show.
With the id of a registration it takes that back, and ends all of its sessions. With
--keep, changes that were proven good stay in force; attune changes lists them on
their node, and attune undo takes them back.`,
		Example: "  attune session stop solver-k3f2\n  attune session stop --keep solver-k3f2.slurm-4711.0",
		Args:    oneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			done, err := Ask(cmd.Context(), at, func(ctx context.Context, c *Client) (*attunev1.StopSessionResponse, error) {
				return c.StopSession(ctx, &attunev1.StopSessionRequest{Id: args[0], Keep: keep})
			})
			if err != nil {
				return err
			}
			if asJSON {
				return WriteProto(p, done)
			}
			return writeStopped(p.Stdout, done)
		},
	}
	at.Add(cmd.Flags())
	cmd.Flags().BoolVar(&keep, "keep", false, "leave changes that were proven good in force")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// oneID refuses anything but one id.
func oneID(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return exitcode.UsageError(fmt.Errorf("one id is needed, not %d", len(args)), "`attune session list` shows them; see `"+cmd.CommandPath()+" --help`")
	}
	return nil
}
