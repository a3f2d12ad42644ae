// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/registry/embed"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// unrelated is how many processes nobody has registered.
	unrelated = 1000
	// idle is for how long the service is weighed beside them.
	idle = 30 * time.Second
	// stormProcesses is how many processes a build is made of here.
	stormProcesses = 3000
	// quiet is how long the service is left alone before it is weighed.
	quiet = 5 * time.Second
)

// service is what attuned takes with all of its processes: the one that the next session
// will have, and the helpers that read.
type service struct {
	IdlePercent present.Figure `json:"idle_percent_of_a_core"`
	// MB is memory, with what the processes share divided among them.
	MB        present.Figure `json:"memory_mb"`
	Processes int            `json:"processes"`
	// A make-like storm of short processes that nobody has registered, seconds.
	StormProcesses int            `json:"storm_processes"`
	StormWithout   present.Figure `json:"storm_without_s"`
	StormBeside    present.Figure `json:"storm_beside_s"`
	// StormCPU is the service's CPU time meanwhile, milliseconds.
	StormCPU present.Figure `json:"storm_service_cpu_ms"`
}

// weighService runs attuned with a registry that has a registration, and an Analyzer, whose
// answers attuned compares with what it knows, beside a thousand processes that are not meant.
func weighService(ctx context.Context, dir string) (s service, err error) {
	s.StormProcesses = stormProcesses
	if s.StormWithout, err = storm(ctx); err != nil {
		return s, err
	}
	socket := filepath.Join(dir, "registry.sock")
	server, err := embed.Start(embed.Options{Dir: filepath.Join(dir, "registry"), Socket: socket})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	client, err := registry.Open(ctx, registry.Options{URL: "unix:" + socket})
	if err != nil {
		return s, err
	}
	defer client.Close()
	analyzer, err := client.Announce(ctx, &attunev1.AnalyzerRecord{Id: "bench"}, func() []string { return nil })
	if err != nil {
		return s, err
	}
	defer analyzer.End()
	if err := client.PutRegistration(ctx, registration("/opt/nobody/runs-this")); err != nil {
		return s, err
	}
	end, err := startUnrelated(ctx)
	defer end()
	if err != nil {
		return s, err
	}
	daemon := exec.Command(attuned, "--registry", "unix:"+socket, "--run-dir", filepath.Join(dir, "run"),
		"--state-dir", filepath.Join(dir, "state-attuned"), "--policy", filepath.Join(dir, "no-policy"), "--log-level", "error")
	daemon.Stderr = os.Stderr
	if err := daemon.Start(); err != nil {
		return s, err
	}
	defer func() {
		_ = daemon.Process.Signal(syscall.SIGTERM)
		_ = daemon.Wait() // ended as asked
	}()
	err = s.weigh(ctx, daemon.Process.Pid)
	return s, err
}

func (s *service) weigh(ctx context.Context, pid int) (err error) {
	beat.Pause(ctx, quiet)
	before, err := measure.TreeOf(pid)
	if err != nil {
		return err
	}
	beat.Pause(ctx, idle)
	after, err := measure.TreeOf(pid)
	if err != nil {
		return err
	}
	s.IdlePercent = present.Figure(100 * (after.CPU - before.CPU).Seconds() / idle.Seconds())
	if s.StormBeside, err = storm(ctx); err != nil {
		return err
	}
	stormed, err := measure.TreeOf(pid)
	s.StormCPU = present.Figure(measure.Milliseconds(stormed.CPU - after.CPU))
	s.MB, s.Processes = present.Figure(stormed.MB), stormed.Processes
	return err
}

// startUnrelated starts processes that sleep; end ends them.
func startUnrelated(ctx context.Context) (end func(), err error) {
	var all []*exec.Cmd
	end = func() {
		for _, c := range all {
			_ = c.Process.Kill()
			_ = c.Wait() // killed
		}
	}
	for range unrelated {
		c := exec.CommandContext(ctx, "sleep", "3600")
		if err := c.Start(); err != nil {
			return end, err
		}
		all = append(all, c)
	}
	return end, nil
}

// storm starts short processes as a build does, and returns the seconds taken.
func storm(ctx context.Context) (present.Figure, error) {
	began := time.Now()
	script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do /bin/true; i=$((i+1)); done", stormProcesses)
	err := exec.CommandContext(ctx, "sh", "-c", script).Run()
	return present.Figure(time.Since(began).Seconds()), err
}
