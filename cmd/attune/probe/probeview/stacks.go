// SPDX-License-Identifier: Apache-2.0

package probeview

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/internal/flame"
	"github.com/attune-hpc/attune/internal/hits"
	"github.com/attune-hpc/attune/internal/pointtext"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// stacked is what was seen at a point that has stacks for keys, from the beginning and in
// all processes.
type stacked struct {
	read pointtext.Point
	sums map[hits.Key]*hits.Sum
}

// stack adds an aggregate to those of all intervals.
func (p *Printer) stack(at *point, key hits.Key, sum *hits.Sum) {
	if !hits.ByStack(at.read.Spec) {
		return
	}
	text := at.probe.GetText()
	if p.stacks[text] == nil {
		p.stacks[text] = &stacked{read: at.read, sums: make(map[hits.Key]*hits.Sum)}
	}
	all := p.stacks[text].sums
	if all[key] == nil {
		all[key] = &hits.Sum{Signed: at.signed()}
	}
	all[key].Merge(sum)
}

// Graphs are the flame graphs of what was seen at points that have stacks for keys.
func (p *Printer) Graphs() (graphs []*flame.Graph) {
	for _, text := range slices.Sorted(maps.Keys(p.stacks)) {
		s := p.stacks[text]
		value := s.read.Value
		if attunev1.SignedCapture(s.read.Spec, s.read.Spec.GetValueCapture()) {
			value = "" // parts of less than nothing cannot be drawn
		}
		graphs = append(graphs, graph(text, value, s.read.Spec, s.sums))
	}
	return graphs
}

// Programs names the processes, for a title.
func (p *Printer) Programs() string {
	var names []string
	for _, at := range p.sorted(p.gone...) {
		if name := fmt.Sprintf("%s (process %d)", JSON(at.probe)["program"], at.probe.GetPid()); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > 3 {
		names = append(names[:3], fmt.Sprintf("%d more", len(names)-3))
	}
	return strings.Join(names, ", ")
}
