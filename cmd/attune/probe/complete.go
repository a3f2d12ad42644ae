// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/pointcomplete"
	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/cmd/attune/site"
	"github.com/attune-hpc/attune/internal/printable"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// completePoints completes process ids, then points.
func (w *probePlace) completePoints(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return w.completeProcesses(cmd, args, word)
	}
	return pointcomplete.Complete(cmd, args, word)
}

// completeProcesses completes process ids: those of the session that is named, else
// the user's own on this machine.
func (w *probePlace) completeProcesses(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	if w.session == "" {
		return procs.CompleteOwn(), cobra.ShellCompDirectiveNoFileComp
	}
	var words []string
	for _, h := range w.held(cmd.Context()) {
		for _, pid := range h.pids {
			words = append(words, strconv.Itoa(int(pid)))
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// completeAdded completes what can be removed.
func (w *probePlace) completeAdded(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var words []string
	for _, h := range w.held(cmd.Context()) {
		for _, probe := range h.probes {
			switch pid := fmt.Sprint(probe.GetPid()); {
			case probe.GetNumber() == 0:
			case len(args) == 0 && !slices.Contains(words, pid):
				words = append(words, pid)
			case slices.Contains(args, pid):
				words = append(words, fmt.Sprintf("%%%d\t%s", probe.GetNumber(), probe.GetText()))
			}
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// held returns what the sessions hold that are meant, as far as that is told soon: a
// shell waits. Their connections are closed.
func (w *probePlace) held(ctx context.Context) []*holder {
	ctx, cancel := context.WithTimeout(ctx, shellPatience)
	defer cancel()
	held, _, err := w.holders(ctx, nil)
	if err != nil {
		return nil
	}
	closeHolders(held)
	return held
}

// sessions lists the user's sessions at the site, each with what it runs.
func (w *probePlace) sessions(ctx context.Context) (words []string) {
	ctx, cancel := context.WithTimeout(ctx, shellPatience)
	defer cancel()
	list, err := site.Ask(ctx, w.at, func(ctx context.Context, c *site.Client) (*attunev1.ListSessionsResponse, error) {
		return c.ListSessions(ctx, &attunev1.ListSessionsRequest{})
	})
	if err != nil {
		return nil
	}
	for _, s := range list.GetSessions() {
		words = append(words, s.GetId()+"\t"+printable.Line(strings.Join(s.GetCommandLine(), " ")))
	}
	return words
}
