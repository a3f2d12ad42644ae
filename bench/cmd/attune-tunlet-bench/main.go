// SPDX-License-Identifier: Apache-2.0

// Command attune-tunlet-bench asks for the measure points that its options
// name, counts what it gets of them, and says so when a process ends.
package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

func main() { sdk.Serve(newTunlet) }

// tunlet counts.
type tunlet struct {
	points []sdk.Point
	got    map[string]*sums // by the point's id
	lost   uint64
}

// sums are hits and the sum of their values.
type sums struct{ hits, sum uint64 }

func newTunlet() sdk.Tunlet { return &tunlet{got: map[string]*sums{}} }

// Describe implements sdk.Tunlet.
func (*tunlet) Describe() sdk.Description {
	return sdk.Description{
		Name: "bench", Version: "1", Summary: "counts hits",
		Options: []sdk.Option{{Name: "points", Type: sdk.TextOption, Description: "functions, OBJECT:SYMBOL, with blanks between them"}},
	}
}

// Configure reads the points, each perhaps with "@got" (calls through dynamic linking are
// enough), "@events" (a record per hit) or "@time" (the time in the call) behind it.
func (t *tunlet) Configure(options map[string]string) error {
	for _, text := range strings.Fields(options["points"]) {
		p, err := parse(text)
		if err != nil {
			return err
		}
		t.points = append(t.points, p)
		t.got[p.ID] = &sums{}
	}
	return nil
}

func parse(text string) (sdk.Point, error) {
	words := strings.Split(text, "@")
	object, symbol, found := strings.Cut(words[0], ":")
	if !found {
		return sdk.Point{}, fmt.Errorf("point %q: want OBJECT:SYMBOL", text)
	}
	p := sdk.Point{ID: symbol, Object: object, Symbols: []string{symbol}}
	for _, word := range words[1:] {
		switch word {
		case "got":
			p.DynamicCallsOnly = true
		case "events":
			p.Delivery = sdk.DeliverEvents
		case "time":
			p.Place = sdk.Both
		default:
			return p, fmt.Errorf("point %q: unknown word %q", text, word)
		}
	}
	return p, nil
}

// ApplicationStarted asks for the points.
func (t *tunlet) ApplicationStarted(h *sdk.Host, _ sdk.Application) {
	for _, p := range t.points {
		h.AddPoint(p)
	}
}

// HandleAggregates adds sums up.
func (t *tunlet) HandleAggregates(_ *sdk.Host, a sdk.Aggregates) {
	for _, item := range a.Items {
		if s := t.got[item.Point]; s != nil {
			s.hits += item.Count
			s.sum += item.Sum
		}
	}
}

// HandleRecords looks at every record.
func (t *tunlet) HandleRecords(_ *sdk.Host, r sdk.Records) {
	t.lost += r.Lost
	for record := range r.All() {
		if s := t.got[record.Point]; s != nil {
			s.hits++
			s.sum += record.Value
		}
	}
}

// ProcessEnded tells what came: the last of it came before.
func (t *tunlet) ProcessEnded(h *sdk.Host, _ sdk.ProcessEnd) {
	for _, id := range slices.Sorted(maps.Keys(t.got)) {
		h.Remark(0, "%s: %d hits, sum %d, %d records lost", id, t.got[id].hits, t.got[id].sum, t.lost)
	}
}
