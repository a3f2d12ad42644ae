// SPDX-License-Identifier: Apache-2.0

package ps

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/inforce"
	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/cmd/attune/site"
	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/system"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/printable"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

const psLong = `Ps lists your processes, for root all, and what can be done with each:

  system    attune tune of its threads, limits and cgroup
  files     attune tune of its sockets and pipes; needs what a debugger needs
  preload   the library that attune run preloads would be taken, at its next start

What cannot be done stands behind it with the reason. CHANGED are the knobs that are
changed in it, by hand, by a run or by the node's service; attune changes tells more.

With --site it lists the processes that are under control at a site, on all of its
nodes, as attune session start asked for.`

// Process is one process; the JSON document's element.
type Process struct {
	PID     int    `json:"pid"`
	User    string `json:"user"`
	Threads int    `json:"threads"`
	Program string `json:"program"`
	Ways    []way  `json:"ways"`
	// Changed are the knobs that are changed in it; attune changes says more.
	Changed []string `json:"changed,omitempty"`
}

// way is one thing that can be done with a process, or not.
type way struct {
	Name      string `json:"name"`
	Available bool   `json:"available"`
	Reason    string `json:"reason,omitempty"`
}

// Command returns `attune ps`.
func Command(p *cli.Env) *cobra.Command {
	var at site.Flags
	var asJSON, all, atSite bool
	cmd := &cobra.Command{
		Use:     "ps",
		Short:   "List the processes that can be tuned",
		Long:    psLong,
		Example: "  attune ps\n  attune ps --json | jq '.[] | select(.threads > 8)'",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case atSite && all:
				return exitcode.UsageError(errors.New("--all is about this machine's processes"), "leave out --all or --site")
			case atSite:
				return site.Processes(cmd.Context(), p, at, asJSON)
			case at != (site.Flags{}):
				return exitcode.UsageError(errors.New("--analyzer and --registry are about a site's processes"), "add --site")
			}
			list := listRunning(all || os.Geteuid() == 0)
			changes, err := inforce.List(cmd.Context())
			for i := range list {
				list[i].Changed = knobsOf(list[i].PID, changes)
			}
			if !asJSON {
				return errors.Join(writeRunning(p, list), err)
			}
			return errors.Join(p.WriteJSON(list), err)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&all, "all", false, "list other users' processes too")
	cmd.Flags().BoolVar(&atSite, "site", false, "list the processes under control at the site instead")
	at.Add(cmd.Flags())
	return cmd
}

// listRunning lists programs, not kernel threads, without this command; never
// nil. Processes that end meanwhile are left out.
func listRunning(all bool) []Process {
	list := []Process{}
	look := procs.NewReader()
	defer look.Close()
	for _, pid := range procs.IDs() {
		owner, err := procs.Owner(pid)
		if err != nil || pid == os.Getpid() || !all && owner != os.Geteuid() {
			continue
		}
		stat, err := procid.ReadStat(pid)
		if err != nil || stat.Zombie() || stat.Kernel {
			continue
		}
		ways, err := waysInto(look, pid)
		if err != nil {
			continue
		}
		list = append(list, Process{
			PID: pid, User: procs.UserName(owner), Threads: stat.Threads,
			Program: printable.Line(stat.Comm), Ways: ways,
		})
	}
	return list
}

// knobsOf lists what is changed in a process, each knob once.
func knobsOf(pid int, changes []actuate.InForce) (knobs []string) {
	for _, c := range changes {
		if c.PID == pid && !slices.Contains(knobs, c.Knob) {
			knobs = append(knobs, c.Knob)
		}
	}
	return knobs
}

// waysInto finds out what can be done with a process; nothing is changed. An
// error if it has ended.
func waysInto(look procs.Reader, pid int) ([]way, error) {
	identity, err := procid.Of(pid)
	if err != nil {
		return nil, err
	}
	target, err := system.Open(identity)
	if err != nil {
		return nil, err
	}
	defer target.Close()
	ways := []way{newWay("system", target.Allowed()), newWay("files", errors.Join(target.Allowed(), traceable(pid)))}
	why, refusal := look.PreloadRefusal(pid)
	if errors.Is(refusal, procid.ErrGone) {
		return nil, refusal
	}
	if why != "" {
		refusal = errors.New(why)
	}
	return append(ways, newWay("preload", refusal)), nil
}

func newWay(name string, err error) way {
	if err == nil {
		return way{Name: name, Available: true}
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return way{Name: name, Reason: first}
}

// traceable says whether the kernel lets this user into a process as it would
// let a debugger.
func traceable(pid int) error {
	if err := proc.Accessible(pid); errors.Is(err, proc.ErrPermission) {
		return err
	}
	return nil
}

func writeRunning(p *cli.Env, list []Process) error {
	w := cli.Table(p.Stdout)
	fmt.Fprintln(w, "PID\tUSER\tTHREADS\tPROGRAM\tCHANGED\tCAN\tCANNOT")
	for _, r := range list {
		var can, cannot []string
		for _, way := range r.Ways {
			if way.Available {
				can = append(can, way.Name)
			} else {
				cannot = append(cannot, way.Name+": "+way.Reason)
			}
		}
		fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%s\t%s\t%s\n", r.PID, r.User, r.Threads, r.Program,
			printable.Line(strings.Join(r.Changed, ", ")), strings.Join(can, ", "), printable.Line(strings.Join(cannot, "; ")))
	}
	return w.Flush()
}
