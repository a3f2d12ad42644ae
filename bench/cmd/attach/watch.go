// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/internal/pointtext"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// seen is what came of points that were asked for together, since they were.
type seen struct {
	placed time.Duration // until the last one was in place
	first  time.Duration // until the first hit of the last one had come
	// by counts the points by mechanism.
	by map[string]int
}

// specs are points on functions of an object, each hit of which is wanted.
func specs(object string, functions []string) (points []*attunev1.MeasurePoint, err error) {
	for _, function := range functions {
		point, err := pointtext.Parse(object + ":" + function + " each")
		if err != nil {
			return nil, err
		}
		points = append(points, point.Spec)
	}
	return points, nil
}

// watch asks for points until each has been hit. They are taken out afterwards
// without waiting.
func (n *node) watch(ctx context.Context, pid int, points []*attunev1.MeasurePoint, since time.Time) (seen, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	stream, err := n.WatchProbes(ctx, &attunev1.WatchProbesRequest{Pids: []int32{int32(pid)}, Points: points})
	if err != nil {
		return seen{}, err
	}
	w := watching{since: since, state: make(map[uint32]attunev1.PointState), hit: make(map[uint32]bool), seen: seen{by: make(map[string]int)}}
	for len(w.state) < len(points) || len(w.hit) < len(points) {
		m, err := stream.Recv()
		if err != nil {
			return w.seen, fmt.Errorf("%d of %d points placed, %d hit: %w", len(w.state), len(points), len(w.hit), err)
		}
		if err := w.take(m); err != nil {
			return w.seen, err
		}
	}
	return w.seen, nil
}

// watching is a stream that is read.
type watching struct {
	since time.Time
	state map[uint32]attunev1.PointState
	hit   map[uint32]bool
	seen  seen
}

func (w *watching) take(m *attunev1.WatchProbesResponse) error {
	now := time.Since(w.since)
	if p := m.GetProbe(); p != nil {
		st := p.GetStatus()
		if st.GetState() != attunev1.PointState_POINT_STATE_PLACED {
			return fmt.Errorf("%s: %s", p.GetText(), st.GetReason())
		}
		if w.state[st.GetPoint()] == 0 {
			w.state[st.GetPoint()], w.seen.placed = st.GetState(), now
			w.seen.by[st.GetMechanism()]++
		}
	}
	for _, batch := range m.GetHits().GetRecords() {
		for run := range attunev1.RecordRuns(batch.GetRecords()) {
			if !w.hit[run.Point] {
				w.hit[run.Point], w.seen.first = true, now
			}
		}
	}
	return nil
}

// called finds so many of some functions that a program calls within a second.
func (n *node) called(ctx context.Context, pid int, object string, functions []string, most int) (found []string, err error) {
	byText := make(map[string]string)
	var points []*attunev1.MeasurePoint
	for _, function := range functions {
		point, err := pointtext.Parse(object + ":" + function)
		if err != nil {
			return nil, err
		}
		points = append(points, point.Spec)
		byText[point.Spec.GetId()] = function
	}
	request := []int32{int32(pid)}
	if _, err := n.AddProbes(ctx, &attunev1.AddProbesRequest{Pids: request, Points: points}); err != nil {
		return nil, err
	}
	if err := measure.Pause(ctx, time.Second); err != nil {
		return nil, err
	}
	list, err := n.ListProbes(ctx, &attunev1.ListProbesRequest{Pids: request})
	if err != nil {
		return nil, err
	}
	// Those that are called most: others may not be for a while.
	probes := list.GetProbes()
	slices.SortFunc(probes, func(a, b *attunev1.Probe) int { return cmp.Compare(b.GetHits(), a.GetHits()) })
	for _, p := range probes[:min(most, len(probes))] {
		if p.GetHits() > 0 {
			found = append(found, byText[p.GetText()])
		}
	}
	if len(found) < most {
		err = errors.New("the program calls too few functions")
	}
	return found, err
}
