// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/analyzer/store"
	"github.com/attune-hpc/attune/cmd/attune/internal/byhand"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/cmd/attune/tune"
	"github.com/attune-hpc/attune/internal/exitcode"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func newAdviceApply(p *cli.Env) *cobra.Command {
	var flags tune.Flags
	cmd := &cobra.Command{
		Use:   "apply ID [PID...]",
		Short: "Make the changes of an advice in running processes",
		Long: `Apply makes the changes of an advice in running processes: in those that are named,
or in all of yours that run the program that it was given for. Nobody measures what it
brings: attune attach does, and takes back what brings nothing. attune advice undo takes
the changes back, attune changes lists them. What is about one thread or descriptor is
not changed in processes that began after the run: they have others.`,
		Example:           "  attune advice apply 85dd\n  attune advice apply --dry-run 85dd 4711",
		Args:              cli.Arguments(1, cli.Any),
		ValidArgsFunction: completeAdvice,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdvice(cmd.Context(), args[0], func(s *store.Store, a store.Advice) error {
				pids, err := advisedProcesses(a, args[1:])
				if err != nil {
					return err
				}
				return applyAdvice(cmd.Context(), p, s, a, flags, pids)
			})
		},
	}
	cmd.Flags().BoolVarP(&flags.DryRun, "dry-run", "n", false, "say what would be changed, and change nothing")
	cmd.Flags().BoolVar(&flags.JSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&flags.NoUndo, "no-undo", false, "also change what you could not change back")
	return cmd
}

// advisedProcesses returns the processes that are named, or all of this user that
// run the program.
func advisedProcesses(a store.Advice, named []string) ([]int, error) {
	if len(named) > 0 {
		return procs.Parse(named)
	}
	var pids []int
	for _, pid := range procs.IDs() {
		owner, err := procs.Owner(pid)
		exe, exeErr := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe"))
		if err == nil && exeErr == nil && owner == os.Geteuid() && exe == a.Executable && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		return nil, &exitcode.Error{
			Code: exitcode.Failure, Err: fmt.Errorf("no process of yours runs %s", a.Executable),
			Remedy: "start it, or name processes: attune advice apply " + a.ID + " PID...",
		}
	}
	return pids, nil
}

// applyAdvice makes the changes, and notes which ones they are.
func applyAdvice(ctx context.Context, p *cli.Env, s *store.Store, a store.Advice, flags tune.Flags, pids []int) error {
	var requests []tune.Request
	for _, ch := range a.Changes {
		if err := hasPlace(a, ch, pids); err != nil {
			return err
		}
		requests = append(requests, tune.Request{
			Name: ch.GetKnob(), Action: ch.GetAction(), At: byHandAt(ch.GetSafePoint()),
			OfMPI: strings.HasPrefix(ch.GetAction().GetSetting().GetName(), tune.MpiPrefix),
		})
	}
	if len(requests) == 0 {
		return fmt.Errorf("advice %s changes nothing", a.ID)
	}
	node, err := os.Hostname()
	if err != nil {
		return err
	}
	return tune.Noting(ctx, p, flags, pids, requests, func(ids []string) error {
		if len(ids) == 0 {
			return nil
		}
		return s.Applied(ctx, a.ID, node, ids)
	})
}

// hasPlace refuses a change of one thread or descriptor in processes that began
// after the run that found it: the number means something else there. That another
// process had the number at the time of the run it cannot know.
func hasPlace(a store.Advice, ch *attunev1.Change, pids []int) error {
	system := ch.GetAction().GetSystem()
	if (system == nil || system.On == nil) && !strings.Contains(ch.GetAction().GetSetting().GetName(), "@") {
		return nil
	}
	for _, pid := range pids {
		began, err := procs.Begin(pid)
		if err == nil && began.After(a.Last) {
			return &exitcode.Error{
				Code: exitcode.Failure, Err: fmt.Errorf("%q is about one thread or descriptor of a run that is over: process %d began later, and has others",
					attunev1.ActionText(ch.GetAction()), pid),
				Remedy: fmt.Sprintf("`attune attach %d` looks for its own", pid),
			}
		}
	}
	return nil
}

// byHandAt returns where a change is made without DMLib: a hook of its is no
// place then.
func byHandAt(at *attunev1.SafePoint) *attunev1.SafePoint {
	if at.GetKind() == attunev1.SafePoint_KIND_NEXT_HOOK {
		return nil
	}
	return at
}

func newAdviceUndo(p *cli.Env) *cobra.Command {
	return aboutOne(&cobra.Command{
		Use: "undo ID", Short: "Take back what attune advice apply has changed", Example: "  attune advice undo 85dd",
	}, func(ctx context.Context, s *store.Store, a store.Advice) error { return undoAdvice(ctx, p, s, a) })
}

// undoAdvice takes back what is still in force of an advice.
func undoAdvice(ctx context.Context, p *cli.Env, s *store.Store, a store.Advice) error {
	node, err := os.Hostname()
	if err != nil {
		return err
	}
	made, err := s.ByHand(ctx, a.ID, node)
	if err != nil {
		return err
	}
	cli.OutlivePipes() // what is undone is noted, whoever reads of it
	found, err := byhand.UndoLeft(ctx, p, made)
	if err != nil {
		return err
	}
	if !found {
		fmt.Fprintf(p.Stdout, "nothing of advice %s is in force on this node\n", a.ID)
	}
	return s.Settled(ctx, node, made)
}

// adviceActions returns what an advice does, a line each.
func adviceActions(a store.Advice) []string {
	out := []string{}
	for _, ch := range a.Changes {
		out = append(out, attunev1.ActionText(ch.GetAction()))
	}
	return out
}
