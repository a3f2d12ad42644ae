// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Node returns `attune node`.
func Node(p *cli.Env) *cobra.Command {
	return cli.Group(&cobra.Command{Use: "node", Short: "Show the nodes of a site"}, newNodeList(p))
}

func newNodeList(p *cli.Env) *cobra.Command {
	var at Flags
	var asJSON, verbose bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List nodes with attuned, and Analyzers",
		Long: `List shows each node that attuned serves: how it finds processes, how many of yours
are under control, and what went wrong and was survived. With --verbose also the
processes that have the name of an application and are left alone, and why.`,
		Example: "  attune node list\n  attune node list --verbose",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			nodes, err := Ask(cmd.Context(), at, func(ctx context.Context, c *Client) (*attunev1.ListNodesResponse, error) {
				return c.ListNodes(ctx, &attunev1.ListNodesRequest{})
			})
			if err != nil {
				return err
			}
			if asJSON {
				return WriteProto(p, nodes)
			}
			return writeNodes(p.Stdout, nodes, verbose)
		},
	}
	at.Add(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show processes that are left alone, all troubles, and addresses of Analyzers")
	return cmd
}

// writeNodes prints nodes and Analyzers.
func writeNodes(out io.Writer, nodes *attunev1.ListNodesResponse, verbose bool) error {
	w := cli.Table(out)
	fmt.Fprintln(w, "NODE\tCPUS\tFINDS BY\tSESSIONS\tPROCESSES\tLEFT ALONE\tVERSION\tTROUBLE")
	for _, c := range nodes.GetControllers() {
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%d\t%d\t%s\t%s\n", c.GetHost(), c.GetCpus(), strings.Join(c.GetModes(), ","), len(c.GetShares()),
			controlled(c), len(c.GetMismatches()), c.GetVersion(), dash(trouble(c)))
	}
	for _, a := range nodes.GetAnalyzers() {
		fmt.Fprintf(w, "%s\t-\tAnalyzer\t-\t-\t-\t%s\t%s\n", a.GetHost(), a.GetVersion(), dash(""))
	}
	if err := w.Flush(); err != nil || !verbose {
		return err
	}
	for _, c := range nodes.GetControllers() {
		for _, m := range c.GetMismatches() {
			fmt.Fprintf(out, "%s: process %d of user %d, %s, is left alone: %s\n", c.GetHost(), m.GetPid(), m.GetUid(), dash(m.GetExecutable()), dash(m.GetReason()))
		}
		for _, t := range c.GetTroubles() {
			fmt.Fprintf(out, "%s: %s\n", c.GetHost(), dash(t.GetText()))
		}
	}
	for _, a := range nodes.GetAnalyzers() {
		fmt.Fprintf(out, "%s: the Analyzer is at %s\n", a.GetHost(), dash(strings.Join(a.GetAddresses(), " ")))
	}
	return nil
}

// controlled counts the processes of a node.
func controlled(c *attunev1.ControllerRecord) (n uint32) {
	for _, s := range c.GetShares() {
		n += s.GetProcesses()
	}
	return n
}

// trouble is the latest, or why a node does not find processes by the best way.
func trouble(c *attunev1.ControllerRecord) string {
	if n := len(c.GetTroubles()); n > 0 {
		return c.GetTroubles()[n-1].GetText()
	}
	return c.GetReason()
}

// Processes lists the processes under control at a site.
func Processes(ctx context.Context, p *cli.Env, at Flags, asJSON bool) error {
	found, err := Ask(ctx, at, func(ctx context.Context, c *Client) (*attunev1.LocateProcessesResponse, error) {
		return c.LocateProcesses(ctx, &attunev1.LocateProcessesRequest{Locate: &attunev1.LocateRequest{}})
	})
	if err != nil {
		return err
	}
	if asJSON {
		return WriteProto(p, found)
	}
	w := cli.Table(p.Stdout)
	fmt.Fprintln(w, "NODE\tPID\tUSER\tRANK\tREGISTRATION\tJOB\tMECHANISMS\tPROGRAM")
	none := true
	for _, n := range found.GetNodes() {
		for _, l := range n.GetProcesses() {
			none = false
			pr := l.GetProcess()
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", n.GetHost(), pr.GetIdentity().GetPid(), procs.UserName(int(pr.GetUid())), rankText(pr),
				l.GetRegistration(), dash(pr.GetJob().Key()), dash(mechanismsText(pr)), dash(pr.GetExecutable()))
		}
	}
	for _, host := range found.GetSilent() {
		fmt.Fprintf(p.Stderr, "attune: node %s did not answer\n", host)
	}
	if none {
		return p.Nothing("is under control")
	}
	return w.Flush()
}

func rankText(p *attunev1.Process) string {
	if p.Rank == nil {
		return "-"
	}
	return fmt.Sprint(p.GetRank())
}

func mechanismsText(p *attunev1.Process) string {
	var open []string
	for _, m := range p.GetMechanisms() {
		if m.GetAvailable() {
			open = append(open, m.GetName())
		}
	}
	slices.Sort(open)
	return strings.Join(open, ",")
}
