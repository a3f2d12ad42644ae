// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/cmd/attune/probe/probeview"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/hits"
	"github.com/attune-hpc/attune/internal/printable"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// addProbes puts points into processes and leaves them there.
func addProbes(ctx context.Context, p *cli.Env, in probePlace, pids []int, points []*attunev1.MeasurePoint, asJSON bool, hold holdFlags) error {
	if _, err := hold.config(); err != nil {
		return err
	}
	held, rest, err := in.holders(ctx, pids)
	if err != nil {
		return err
	}
	defer func() { closeHolders(held) }()
	if len(rest) > 0 {
		if err := existing(rest); err != nil {
			return err
		}
		h, err := startHolder(ctx, rest, hold)
		if err != nil {
			return err
		}
		held = append(held, h)
	}
	var probes []*attunev1.Probe
	for _, h := range eachOnce(held) {
		answer, err := h.AddProbes(ctx, &attunev1.AddProbesRequest{
			Session: h.place.session, Host: h.place.host, Pids: h.pids, Points: points, Follow: hold.follow,
		})
		if err != nil {
			return cli.Said(err)
		}
		probes = append(probes, answer.GetProbes()...)
	}
	inOrder(probes, pids, points)
	refused := 0
	for _, probe := range probes {
		if probe.GetStatus().GetState() == attunev1.PointState_POINT_STATE_REFUSED {
			refused++
		}
	}
	err = dropRefused(ctx, held, probes) // first: the answer may have no reader, which ends this process
	return errors.Join(err, writeProbes(p, probes, asJSON), failedProbes(refused, len(probes)))
}

// dropRefused forgets what was refused: nobody wants to see it in lists.
func dropRefused(ctx context.Context, held []*holder, probes []*attunev1.Probe) error {
	for _, probe := range probes {
		if probe.GetStatus().GetState() != attunev1.PointState_POINT_STATE_REFUSED {
			continue
		}
		for _, h := range held {
			if !slices.Contains(h.pids, probe.GetPid()) {
				continue
			}
			request := &attunev1.RemoveProbesRequest{
				Session: h.place.session, Host: h.place.host, Pids: []int32{probe.GetPid()}, Probes: []string{probe.GetText()},
			}
			if _, err := h.RemoveProbes(ctx, request); err != nil {
				return cli.Said(err)
			}
		}
	}
	return nil
}

// inOrder sorts answers as the points were asked for.
func inOrder(probes []*attunev1.Probe, pids []int, points []*attunev1.MeasurePoint) {
	slices.SortStableFunc(probes, func(a, b *attunev1.Probe) int {
		place := func(probe *attunev1.Probe) int {
			return slices.IndexFunc(points, func(point *attunev1.MeasurePoint) bool { return point.GetId() == probe.GetText() })
		}
		return cmp.Or(cmp.Compare(place(a), place(b)),
			cmp.Compare(slices.Index(pids, int(a.GetPid())), slices.Index(pids, int(b.GetPid()))))
	})
}

// listProbes shows the points in processes, all if none is given.
func listProbes(ctx context.Context, p *cli.Env, in probePlace, pids []int, asJSON bool) error {
	held, rest, err := in.holders(ctx, pids)
	if err != nil {
		return err
	}
	var users map[*attunev1.Probe]string // for root only, who sees several
	if os.Geteuid() == 0 && in.session == "" {
		users = make(map[*attunev1.Probe]string)
		held = append(held, othersHolders(ctx, pids)...)
		rest = free(pids, held)
	}
	defer func() { closeHolders(held) }()
	if len(rest) > 0 {
		if err := existing(rest); err != nil {
			return err
		}
	}
	var probes []*attunev1.Probe
	for _, h := range held {
		probes = append(probes, h.probes...)
		for _, probe := range h.probes {
			if users != nil {
				users[probe] = procs.UserName(h.uid)
			}
		}
	}
	slices.SortStableFunc(probes, func(a, b *attunev1.Probe) int {
		return cmp.Or(cmp.Compare(a.GetPid(), b.GetPid()), cmp.Compare(a.GetNumber(), b.GetNumber()))
	})
	return writeList(p, probes, users, asJSON)
}

// removeProbes takes added points out; no names means all.
func removeProbes(ctx context.Context, p *cli.Env, in probePlace, pids []int, names []string, asJSON bool) error {
	held, _, err := in.holders(ctx, pids)
	if err != nil {
		return err
	}
	defer closeHolders(held)
	numbers := make([]string, 0, len(names))
	for _, name := range names {
		numbers = append(numbers, strings.TrimPrefix(name, "%"))
	}
	var gone []*attunev1.Probe
	for _, h := range held {
		answer, err := h.RemoveProbes(ctx, &attunev1.RemoveProbesRequest{
			Session: h.place.session, Host: h.place.host, Pids: h.pids, Probes: numbers,
		})
		if err != nil {
			return cli.Said(err)
		}
		gone = append(gone, answer.GetProbes()...)
	}
	if len(gone) == 0 {
		return &exitcode.Error{
			Code: exitcode.Failure, Err: errors.New("no such measure point was added to these processes"),
			Remedy: "`attune probe list` shows what was",
		}
	}
	if asJSON {
		return writeProbes(p, gone, true)
	}
	for _, probe := range gone {
		fmt.Fprintf(p.Stdout, "removed: %d %s\n", probe.GetPid(), printable.Line(probe.GetText()))
	}
	return nil
}

// writeProbes writes points of the user's own sessions.
func writeProbes(p *cli.Env, probes []*attunev1.Probe, asJSON bool) error {
	return writeList(p, probes, nil, asJSON)
}

// writeList writes points, with the users whose sessions hold them, if users is
// given.
func writeList(p *cli.Env, probes []*attunev1.Probe, users map[*attunev1.Probe]string, asJSON bool) error {
	if asJSON {
		documents := make([]map[string]any, 0, len(probes))
		for _, probe := range probes {
			document := probeview.JSON(probe)
			if users != nil {
				document["user"] = users[probe]
			}
			documents = append(documents, document)
		}
		return p.WriteJSON(documents)
	}
	if len(probes) == 0 {
		return p.Nothing("is measured: attune probe add does that")
	}
	w := cli.Table(p.Stdout)
	heading := "ID\tPROCESS\tPROGRAM\tPOINT\tBY\tSTATE\tHITS\tCOST\tWHY"
	if users != nil {
		heading = "USER\t" + heading
	}
	fmt.Fprintln(w, heading)
	for _, probe := range probes {
		if users != nil {
			fmt.Fprintf(w, "%s\t", users[probe])
		}
		writeProbe(w, probe)
	}
	return w.Flush()
}

// writeProbe writes a row. Another user's session may say anything.
func writeProbe(w *tabwriter.Writer, probe *attunev1.Probe) {
	st := probe.GetStatus()
	id, by, cost := "-", cmp.Or(printable.Line(st.GetMechanism()), "-"), "-"
	if probe.GetNumber() != 0 {
		id = fmt.Sprintf("%%%d", probe.GetNumber())
	}
	if by != "-" {
		cost = hits.Cost(st.GetCostNanos(), st.GetCostMeasured())
	}
	why := cmp.Or(st.GetDegradedReason(), st.GetReason())
	if probe.GetNumber() == 0 && probe.GetOwner() != "" {
		why = strings.TrimSuffix(probe.GetOwner()+": "+why, ": ")
	}
	fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", id, probe.GetPid(), printable.Line(filepath.Base(probe.GetExecutable())),
		printable.Line(probe.GetText()), by, hits.State(st), probe.GetHits(), cost, printable.Line(oneLine(why)))
}

// oneLine joins the lines of a reason.
func oneLine(text string) string { return strings.Join(strings.Split(text, "\n"), "; ") }
