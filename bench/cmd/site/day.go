// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/bench/internal/catalogue"
	"github.com/attune-hpc/attune/bench/internal/tuned"
	"github.com/attune-hpc/attune/bench/internal/workload"
	"github.com/attune-hpc/attune/internal/testing/cluster"
)

// patience bounds the wait for a report, which comes some seconds after a job.
const patience = time.Minute

// otherProgram is a job that would be tuned if the policy had it: malloc and free
// of large blocks.
func otherProgram(ctx context.Context, folder string) (string, error) {
	programs := workload.Catalogue{Sources: workload.Repository.Sources, Cache: folder}
	storm, missing := catalogue.Named("malloc/C").Prepare(ctx, programs)
	if missing != "" {
		return "", errors.New(missing)
	}
	return storm.Default(0)[0], nil
}

// withoutAttune measures where nothing is on the nodes: the program as it is, with
// the best setting, and packed.
func (d *document) withoutAttune(ctx context.Context) error {
	other, err := otherProgram(ctx, d.Scratch)
	if err != nil {
		return err
	}
	packed := filepath.Join(d.Scratch, "lmp.tuned")
	pack := exec.CommandContext(ctx, "bin/attune", "pack", "/usr/bin/lmp", "-o", packed, "--quiet", "--report", "/home/alice/%j-%h.json")
	if out, err := pack.CombinedOutput(); err != nil {
		return fmt.Errorf("pack: %w: %s", err, out)
	}
	c, err := cluster.Start(ctx, cluster.Options{Keep: []string{d.Scratch}})
	if err != nil {
		return err
	}
	defer c.Close()
	d.Ranks = ranks()
	say("as it is")
	if d.Plain, err = (job{program: "lmp", seconds: d.plainSeconds}).run(ctx, c, other); err != nil {
		return err
	}
	say("with the best static setting")
	if d.Best, err = (job{"lmp", "OMPI_MCA_mpi_yield_when_idle=1", d.plainSeconds}).run(ctx, c, other); err != nil {
		return err
	}
	say("packed")
	if d.Packed.rates, err = (job{program: packed, seconds: d.seconds}).run(ctx, c, other); err != nil {
		return err
	}
	return d.Packed.readPacked(ctx, c)
}

// readPacked reads the report of each node.
func (t *tunedDay) readPacked(ctx context.Context, c *cluster.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for node := 1; node <= nodes; node++ {
		text, err := c.Run(ctx, "", cluster.Login, "bash", "-c",
			`until set -- /home/alice/*-"$0".json && [ -e "$1" ]; do sleep 0.1; done; cat "$1"`, fmt.Sprintf("node%d", node))
		if err == nil {
			err = t.add(text)
		}
		if err != nil {
			return fmt.Errorf("report of the packed program: %w", err)
		}
	}
	return nil
}

// add counts one session.
func (t *tunedDay) add(text string) error {
	var r report.Report
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	t.Sessions++
	kept := map[int]bool{}
	for _, p := range r.Processes {
		if !slices.Contains(t.Hosts, p.Host) {
			t.Hosts = append(t.Hosts, p.Host)
		}
	}
	for i, change := range r.Changes {
		if change.Verdict == report.VerdictKept {
			kept[r.Changes[i].Process] = true
		}
	}
	slices.Sort(t.Hosts)
	t.Processes += len(r.Processes)
	t.Kept += len(kept)
	t.changes = append(t.changes, tuned.Changes(r)...)
	return nil
}

// withService measures where attuned is on the nodes.
func (d *document) withService(ctx context.Context) error {
	other, err := otherProgram(ctx, d.Scratch)
	if err != nil {
		return err
	}
	setup, err := cluster.Site{}.Setup(".", d.Scratch)
	if err != nil {
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{Setup: setup, Keep: []string{d.Scratch}})
	if err != nil {
		return err
	}
	defer c.Close()
	say("with attuned on the nodes")
	if d.Service.rates, err = (job{program: "lmp", seconds: d.seconds}).run(ctx, c, other); err != nil {
		return err
	}
	return d.readService(ctx, c)
}

// readService reads all reports of the Analyzer: those of the job, and that of the
// other user's.
func (d *document) readService(ctx context.Context, c *cluster.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	reports, err := c.Reports(ctx)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, c.Logs(context.WithoutCancel(ctx)))
	}
	for _, text := range reports {
		var r report.Report
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return err
		}
		if len(r.Command) > 0 && filepath.Base(r.Command[0]) == "lmp" {
			if err := d.Service.add(text); err != nil {
				return err
			}
			continue
		}
		d.Other.add(r)
	}
	return nil
}

// add counts one session. A change that was proposed and refused is none.
func (o *otherJob) add(r report.Report) {
	o.Processes += len(r.Processes)
	for _, point := range r.Points {
		if point.Hits > 0 {
			o.Points++
		}
	}
	for _, change := range r.Changes {
		if change.AppliedAt != nil {
			o.Changes++
		} else {
			o.Refusal = change.Reason
		}
	}
}

func say(what string) { fmt.Fprintln(os.Stderr, "site:", what) }
