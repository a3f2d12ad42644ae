// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/tuned"
)

// server is a redis-server that keeps nothing and listens in a folder.
type server struct {
	dir, name string
	ended     chan struct{} // closed when it has ended
	err       error         // how, when ended is closed
	run       tuned.Run     // of one under attune, then
}

func newServer(dir, name string) *server {
	return &server{dir: dir, name: name, ended: make(chan struct{})}
}

func (s *server) socket() string { return filepath.Join(s.dir, s.name) }

func (s *server) command() []string {
	return []string{"redis-server", "--port", "0", "--unixsocket", s.socket(), "--save", "", "--dir", s.dir}
}

// start returns when it answers.
func (s *server) start(ctx context.Context) error {
	return s.begin(ctx, func() error {
		_, err := measure.Run(ctx, s.command())
		return err
	})
}

// startWatched starts it under attune, which leaves the points as they are whatever
// they cost.
func (s *server) startWatched(ctx context.Context, points []string) error {
	flags := []string{"--mode", "observe", "--budget", "100"}
	for _, p := range points {
		flags = append(flags, "--probe", p)
	}
	attune := tuned.Attune{Binary: "bin/attune", Scratch: s.dir, Flags: flags}
	return s.begin(ctx, func() (err error) {
		s.run, err = attune.Run(ctx, s.command())
		return err
	})
}

func (s *server) begin(ctx context.Context, run func() error) error {
	go func() {
		defer close(s.ended)
		s.err = run()
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if c, err := net.Dial("unix", s.socket()); err == nil {
			return c.Close()
		}
		select {
		case <-s.ended:
			return errors.Join(fmt.Errorf("%s: it does not listen", s.name), s.err)
		case <-ctx.Done():
			return errors.Join(ctx.Err(), s.wait())
		case <-tick.C:
		}
	}
}

// wait returns how the server ended.
func (s *server) wait() error {
	<-s.ended
	return s.err
}

// end has the server end.
func (s *server) end(ctx context.Context) error {
	_, err := measure.Run(ctx, []string{"redis-cli", "-s", s.socket(), "shutdown", "nosave"})
	return errors.Join(err, s.wait())
}

// endBoth ends the servers that were started, after err.
func endBoth(ctx context.Context, err error, servers ...*server) error {
	for _, s := range servers {
		err = errors.Join(err, s.end(ctx))
	}
	return err
}

// ask lets redis-benchmark ask the server, and returns how many requests a second it
// answered, of GET and SET together, and how much CPU time each took.
func (s *server) ask(ctx context.Context, l load) (rate, nanos float64, err error) {
	before, err := s.cpu(ctx)
	if err != nil {
		return 0, 0, err
	}
	command := []string{
		"redis-benchmark", "-s", s.socket(), "-t", "get,set", "-r", "1000", "--csv",
		"-n", strconv.Itoa(l.requests), "-P", strconv.Itoa(l.atATime),
	}
	result, err := measure.Run(ctx, command)
	if err != nil {
		return 0, 0, err
	}
	after, err := s.cpu(ctx)
	if err != nil {
		return 0, 0, err
	}
	rate, err = rateOf(result)
	return rate, float64((after - before).Nanoseconds()) / float64(kinds*l.requests), err
}

// kinds of requests: GET and SET.
const kinds = 2

// rateOf returns the requests a second of all kinds together.
func rateOf(result measure.Result) (float64, error) {
	seconds, found := 0.0, 0
	for _, line := range result.Lines {
		fields, err := csv.NewReader(strings.NewReader(line.Text)).Read()
		if err != nil || len(fields) < 2 {
			continue
		}
		if rate, err := strconv.ParseFloat(fields[1], 64); err == nil && rate > 0 {
			seconds += 1 / rate
			found++
		}
	}
	if found != kinds {
		return 0, fmt.Errorf("redis-benchmark told %d rates, not those of get and set", found)
	}
	return kinds / seconds, nil
}

// cpu returns the CPU time that the server says it has used.
func (s *server) cpu(ctx context.Context) (total time.Duration, err error) {
	result, err := measure.Run(ctx, []string{"redis-cli", "-s", s.socket(), "info", "cpu"})
	if err != nil {
		return 0, err
	}
	for _, line := range result.Lines {
		name, value, _ := strings.Cut(strings.TrimSpace(line.Text), ":")
		if name != "used_cpu_user" && name != "used_cpu_sys" {
			continue
		}
		used, err := time.ParseDuration(value + "s")
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		total += used
	}
	return total, nil
}

// seen returns an error if one of so many points saw nothing. Tunlets have points of
// their own, at hooks.
func (s *server) seen(points int) error {
	seen := 0
	for _, p := range s.run.Report.Points {
		switch {
		case !strings.HasPrefix(p.Target, "redis-server:"):
		case p.Hits == 0:
			return fmt.Errorf("%s, %s: %s", p.Target, p.State, p.Reason)
		default:
			seen++
		}
	}
	if seen != points {
		return fmt.Errorf("%d points of %d are in the report", seen, points)
	}
	return nil
}
