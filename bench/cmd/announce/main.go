// SPDX-License-Identifier: Apache-2.0

// Command announce measures how soon all nodes of a site know of a registration:
// a registry with mutual TLS, and for each node a client of its own that watches,
// announces its controller, and answers questions, as attuned has. It shows too
// what that costs in memory and CPU time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// document is what -json writes; times in milliseconds, memory in kB.
type document struct {
	benchmark.Common
	Nodes int `json:"nodes"`
	// Seen is how long each node took to know of each registration, Last how
	// long the last one of them took.
	Seen []float64 `json:"seen_ms"`
	Last []float64 `json:"last_ms"`
	// Locate is how long a question took until all had answered.
	Locate []float64 `json:"locate_ms"`
	// ServerKB is the resident memory of the registry's process, NodeKB what each
	// client adds to this one's.
	ServerKB float64 `json:"server_kb"`
	NodeKB   float64 `json:"node_kb"`
	// ServerCPU is the share of a core that the registry takes while nothing
	// happens but that records are renewed.
	ServerCPU float64 `json:"server_idle_cpu"`
	// NodeCPU is the same of one client.
	NodeCPU float64 `json:"node_idle_cpu"`
}

// between registrations nothing else happens.
const between = 100 * time.Millisecond

func main() {
	if dir := os.Getenv(serveVariable); dir != "" {
		os.Exit(serve(dir))
	}
	nodes := flag.Int("nodes", 1000, "watchers, each with a connection of its own")
	rounds := flag.Int("n", 50, "registrations that are announced")
	idle := flag.Duration("idle", 20*time.Second, "how long idle cost is measured")
	d := &document{}
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "announce", Quick: benchmark.Quick{"n": "20", "idle": "10s"}, Document: d,
		Measure: func(ctx context.Context) error {
			d.Nodes = *nodes
			return d.measure(ctx, *rounds, *idle)
		},
	}))
}

func (d *document) measure(ctx context.Context, rounds int, idle time.Duration) (err error) {
	server, err := startServer(ctx, d.Scratch)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.end()) }()
	writer, err := server.open(ctx)
	if err != nil {
		return err
	}
	defer writer.Close()
	before, err := residentKB(os.Getpid())
	if err != nil {
		return err
	}
	s, err := newSite(ctx, server, d.Nodes)
	if err != nil {
		return err
	}
	defer s.close()
	if err := d.announce(ctx, writer, s, rounds); err != nil {
		return err
	}
	if err := d.locate(ctx, writer, rounds); err != nil {
		return err
	}
	return d.cost(ctx, server, before, idle)
}

// announce registers one application after the other.
func (d *document) announce(ctx context.Context, writer *registry.Client, s *site, rounds int) error {
	for i := range rounds + 1 {
		// One session is started after the other, and not without a break.
		time.Sleep(between)
		id := fmt.Sprint("round-", i)
		began := time.Now()
		if err := writer.PutRegistration(ctx, &attunev1.Registration{Id: id, Executable: "solver"}); err != nil {
			return err
		}
		seen, err := s.await(ctx, id, began)
		if err != nil {
			return err
		}
		if i > 0 { // the first one found connections still being made
			d.Seen = append(d.Seen, seen...)
			d.Last = append(d.Last, measure.Quantile(seen, 1))
		}
	}
	return nil
}

// locate asks all nodes.
func (d *document) locate(ctx context.Context, asks *registry.Client, rounds int) error {
	for range rounds {
		began := time.Now()
		answers, silent, err := asks.Locate(ctx, &attunev1.LocateRequest{}, 10*time.Second)
		if err != nil {
			return err
		}
		if len(answers) != d.Nodes || len(silent) > 0 {
			return fmt.Errorf("%d of %d nodes have answered", len(answers), d.Nodes)
		}
		d.Locate = append(d.Locate, measure.Milliseconds(time.Since(began)))
	}
	return nil
}

// cost waits, and says what it took to do nothing.
func (d *document) cost(ctx context.Context, server *server, before float64, idle time.Duration) error {
	pid := server.command.Process.Pid
	var first [2]time.Duration
	for i, who := range []int{pid, os.Getpid()} {
		var err error
		if first[i], err = procid.CPUTime(who); err != nil {
			return err
		}
	}
	if err := measure.Pause(ctx, idle); err != nil {
		return err
	}
	for i, who := range []int{pid, os.Getpid()} {
		used, err := procid.CPUTime(who)
		if err != nil {
			return err
		}
		share := float64(used-first[i]) / float64(idle)
		if who == pid {
			d.ServerCPU = share
		} else {
			d.NodeCPU = share / float64(d.Nodes)
		}
	}
	after, err := residentKB(os.Getpid())
	if err != nil {
		return err
	}
	d.NodeKB = (after - before) / float64(d.Nodes)
	d.ServerKB, err = residentKB(pid)
	return err
}

// Print implements benchmark.Document.
func (d *document) Print() {
	var table present.Table
	table.Row(fmt.Sprintf("%d nodes, %d registrations", d.Nodes, len(d.Last)), "median", "p99", "most")
	row := func(name string, values []float64) {
		cells := []string{name}
		for _, share := range []float64{0.5, 0.99, 1} {
			cells = append(cells, present.Number(measure.Quantile(values, share))+" ms")
		}
		table.Row(cells...)
	}
	row("a node knows", d.Seen)
	row("the last node knows", d.Last)
	row("all have answered a question", d.Locate)
	table.Print(os.Stdout)
	fmt.Printf("registry: %s MB resident, %.2f %% of a core when idle\n", present.Number(d.ServerKB/1024), 100*d.ServerCPU)
	fmt.Printf("each node: %s kB resident, %.4f %% of a core when idle\n", present.Number(d.NodeKB), 100*d.NodeCPU)
	d.Goals = []present.Goal{
		{Name: "a node knows, p99", Value: present.Figure(measure.Quantile(d.Seen, 0.99)), Unit: "ms", Limit: 100},
		{Name: "memory of a client", Value: present.Figure(d.NodeKB / 1024), Unit: "MB", Limit: 3},
	}
}
