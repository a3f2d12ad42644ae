// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/analyzer/store"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/knowledge"
	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/printable"
)

const adviceLong = `Advice shows what tunlets recommended for your programs, in attune run --mode
advise, and what those that were tried gained. It is kept in knowledge.db in the state
directory ($XDG_STATE_HOME/attune, else ~/.local/state/attune, for root
/var/lib/attune), for each build of a program.

An id is the same in each run. A unique beginning of it is enough.`

// Command returns `attune advice`.
func Command(p *cli.Env) *cobra.Command {
	return cli.Group(&cobra.Command{Use: "advice", Short: "Show, apply and undo what tunlets recommend", Long: adviceLong},
		newAdviceList(p), newAdviceShow(p), newAdviceApply(p), newAdviceUndo(p), newAdviceForget(p))
}

// WithKnowledge opens the knowledge store for a command.
func WithKnowledge(ctx context.Context, do func(*store.Store) error) error {
	s, err := knowledge.Open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

// withAdvice opens the knowledge store for a command about one advice.
func withAdvice(ctx context.Context, id string, do func(*store.Store, store.Advice) error) error {
	return WithKnowledge(ctx, func(s *store.Store) error {
		a, err := findAdvice(ctx, s, id)
		if err != nil {
			return err
		}
		return do(s, a)
	})
}

// findAdvice returns an advice by the beginning of its id, for the program that
// it was given for last.
func findAdvice(ctx context.Context, s *store.Store, id string) (store.Advice, error) {
	found, err := s.Find(ctx, id)
	if errors.Is(err, store.ErrUnknownAdvice) {
		return store.Advice{}, &exitcode.Error{Code: exitcode.Failure, Err: err, Remedy: "see `attune advice list`"}
	}
	if err != nil {
		return store.Advice{}, err
	}
	return found[0], nil
}

func newAdviceList(p *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List what was recommended and tried, the latest first",
		Example: "  attune run --mode advise -- ./solver\n  attune advice list",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return WithKnowledge(cmd.Context(), func(s *store.Store) error {
				all, err := s.List(cmd.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return writeAdviceJSON(p, all)
				}
				return writeAdvice(p, all)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// adviceJSON is one advice in the JSON document.
type adviceJSON struct {
	store.Advice
	Actions []string `json:"actions"`
}

func writeAdviceJSON(p *cli.Env, all []store.Advice) error {
	out := []adviceJSON{}
	for _, a := range all {
		out = append(out, adviceJSON{a, adviceActions(a)})
	}
	return p.WriteJSON(out)
}

func writeAdvice(p *cli.Env, all []store.Advice) error {
	if len(all) == 0 {
		return p.Nothing("is recommended: attune run --mode advise does that")
	}
	w := cli.Table(p.Stdout)
	fmt.Fprintln(w, "ID\tPROGRAM\tTUNLET\tPREDICTED\tMEASURED\tKEPT\tUNDONE\tLAST\tACTION")
	for _, a := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n", a.ID, printable.Line(filepath.Base(a.Executable)), printable.Line(a.Tunlet), timesFaster(a.Predicted),
			timesFaster(a.Gain), a.Kept, a.Undone, a.Last.Local().Format(time.DateTime), printable.Line(strings.Join(adviceActions(a), ", ")))
	}
	return w.Flush()
}

// aboutOne makes a command about one advice.
func aboutOne(cmd *cobra.Command, do func(context.Context, *store.Store, store.Advice) error) *cobra.Command {
	cmd.Args, cmd.ValidArgsFunction = cli.Arguments(1, 1), completeAdvice
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return withAdvice(cmd.Context(), args[0], func(s *store.Store, a store.Advice) error {
			return do(cmd.Context(), s, a)
		})
	}
	return cmd
}

func newAdviceShow(p *cli.Env) *cobra.Command {
	return aboutOne(&cobra.Command{
		Use: "show ID", Short: "Show an advice with its evidence", Example: "  attune advice show 85dd",
	}, func(_ context.Context, _ *store.Store, a store.Advice) error { return showAdvice(p, a) })
}

func showAdvice(p *cli.Env, a store.Advice) error {
	w := cli.Table(p.Stdout)
	row := func(name, value string) { fmt.Fprintf(w, "%s\t%s\n", name, printable.Line(value)) }
	row("advice", a.ID)
	row("tunlet", a.Tunlet)
	row("program", a.Executable)
	row("checksum", a.Application)
	row("why", a.Why)
	for _, action := range adviceActions(a) {
		row("action", action)
	}
	row("predicted", timesFaster(a.Predicted)+confidenceText(a.Confidence))
	row("measured", timesFaster(a.Gain))
	row("sessions", fmt.Sprintf("recommended in %d, kept in %d, undone in %d", a.Given, a.Kept, a.Undone))
	row("first", a.First.Local().Format(time.DateTime))
	row("last", a.Last.Local().Format(time.DateTime))
	return w.Flush()
}

// confidenceText says how sure the tunlet was, if it said so.
func confidenceText(confidence float64) string {
	if confidence == 0 {
		return ""
	}
	return fmt.Sprintf(", %.0f %% sure", 100*confidence)
}

// timesFaster returns a gain for people; "-" if it is not known.
func timesFaster(gain float64) string {
	if gain == 0 {
		return "-"
	}
	return strconv.FormatFloat(gain, 'g', 3, 64) + "x"
}

func newAdviceForget(p *cli.Env) *cobra.Command {
	return aboutOne(&cobra.Command{
		Use: "forget ID", Short: "Remove what is known about an advice",
		Long: "Forget removes what is known about an advice. What is in force stays in force.",
	}, func(ctx context.Context, s *store.Store, a store.Advice) error {
		if err := s.Forget(ctx, a.ID); err != nil {
			return err
		}
		fmt.Fprintf(p.Stdout, "forgotten: advice %s of tunlet %s\n", a.ID, printable.Line(a.Tunlet))
		return nil
	})
}

// completeAdvice completes the id of an advice, as the first argument.
func completeAdvice(cmd *cobra.Command, given []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
	if len(given) > 0 {
		return procs.CompleteOwn(), cobra.ShellCompDirectiveNoFileComp
	}
	err := WithKnowledge(cmd.Context(), func(s *store.Store) error {
		all, err := s.List(cmd.Context())
		for _, a := range all {
			ids = append(ids, a.ID+"\t"+printable.Line(a.Tunlet+": "+strings.Join(adviceActions(a), ", ")))
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
