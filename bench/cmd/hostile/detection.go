// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	"github.com/attune-hpc/attune/bench/internal/measure"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// calls are made by each program that is detected, apart so many microseconds.
	calls, apart = 100, 2000
	// counted is how long the last counts of a program are waited for.
	counted = 2 * time.Second
)

// detections starts programs of the harmless user's in a session that is there, and
// returns from when on calls were counted in each, milliseconds since its exec.
func (s *site) detections(ctx context.Context, runs int) (all []float64, err error) {
	first, err := s.startDetected(ctx) // the session is there as long as it is
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, first.end()) }()
	session, err := s.sessionOf(ctx, first)
	if err != nil {
		return nil, err
	}
	for range runs {
		one, err := s.startDetected(ctx)
		if err != nil {
			return nil, err
		}
		since, err := s.since(ctx, session, one)
		if err := errors.Join(err, one.end()); err != nil {
			return nil, err
		}
		all = append(all, since)
	}
	return all, nil
}

// detected is a program that has made its calls.
type detected struct {
	cmd            *exec.Cmd
	in             interface{ Close() error }
	executed, main int64 // CLOCK_MONOTONIC, ns
}

func (d *detected) end() error { return errors.Join(d.in.Close(), d.cmd.Wait()) }

// startDetected starts one and waits for its calls.
func (s *site) startDetected(ctx context.Context) (*detected, error) {
	command := asHarmless(s.path("harmless/launcher"), s.path("harmless/detected"), strconv.Itoa(apart))
	d := &detected{cmd: exec.CommandContext(ctx, command[0], command[1:]...)}
	d.cmd.Env = measure.Environment("SLURM_JOB_ID=" + detectedJob)
	in, out, err := measure.StartPiped(d.cmd)
	if err != nil {
		return nil, err
	}
	d.in = in
	line, err := out.ReadString('\n')
	if err == nil {
		_, err = fmt.Sscan(line, &d.executed, &d.main)
	}
	if err != nil {
		return nil, fmt.Errorf("detected program says %q: %w", line, errors.Join(err, d.end()))
	}
	return d, nil
}

// sessionOf waits for the session of a process, and until its point is placed there.
func (s *site) sessionOf(ctx context.Context, d *detected) (id string, err error) {
	sessions := attunev1.NewSessionServiceClient(s.conn)
	err = measure.Await(ctx, patience, "session of the harmless user", func() bool {
		list, err := sessions.ListSessions(ctx, &attunev1.ListSessionsRequest{})
		if err != nil {
			return false
		}
		for _, one := range list.GetSessions() {
			if one.GetJob().GetId() == detectedJob {
				id = one.GetId()
			}
		}
		return id != "" && s.probe(ctx, id, d).GetStatus().GetState() == attunev1.PointState_POINT_STATE_PLACED
	})
	return id, err
}

// probe returns the measure point in a process; nil: there is none.
func (s *site) probe(ctx context.Context, session string, d *detected) *attunev1.Probe {
	list, err := attunev1.NewProbeServiceClient(s.conn).ListProbes(ctx, &attunev1.ListProbesRequest{Session: session, Pids: []int32{int32(d.cmd.Process.Pid)}})
	if err != nil || len(list.GetProbes()) == 0 {
		return nil
	}
	return list.GetProbes()[0]
}

// since returns from when on the calls of a program were counted: its main at the
// latest if all were, else the first call that was.
func (s *site) since(ctx context.Context, session string, d *detected) (milliseconds float64, err error) {
	var hits uint64
	for end := time.Now().Add(counted); hits < calls && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		hits = s.probe(ctx, session, d).GetHits()
	}
	if hits == 0 {
		return 0, fmt.Errorf("no call of process %d was counted", d.cmd.Process.Pid)
	}
	missed := calls - min(hits, calls)
	return float64(d.main-d.executed)/1e6 + float64(missed)*apart/1000, ctx.Err()
}
