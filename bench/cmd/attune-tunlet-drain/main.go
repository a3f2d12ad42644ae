// SPDX-License-Identifier: Apache-2.0

// Command attune-tunlet-drain counts what it gets of the calls of labs and
// says so when a process ends. Under the name attune-tunlet-drain-events it
// asks for every call as a record, else for sums.
package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

func main() { sdk.Serve(newTunlet) }

// tunlet counts.
type tunlet struct {
	name             string
	calls, sum, lost uint64
}

func newTunlet() sdk.Tunlet {
	return &tunlet{name: strings.TrimPrefix(filepath.Base(os.Args[0]), "attune-tunlet-")}
}

// Describe implements sdk.Tunlet.
func (t *tunlet) Describe() sdk.Description {
	return sdk.Description{Name: t.name, Version: "1", Summary: "counts calls of labs"}
}

// ApplicationStarted asks for the point.
func (t *tunlet) ApplicationStarted(h *sdk.Host, _ sdk.Application) {
	point := sdk.Point{ID: "labs", Object: "libc.so.6", Symbols: []string{"labs"}, DynamicCallsOnly: true}
	if strings.HasSuffix(t.name, "events") {
		point.Delivery = sdk.DeliverEvents
	}
	h.AddPoint(point)
}

// HandleAggregates adds sums up.
func (t *tunlet) HandleAggregates(_ *sdk.Host, a sdk.Aggregates) {
	for _, item := range a.Items {
		t.calls += item.Count
		t.sum += item.Sum
	}
}

// HandleRecords looks at every record.
func (t *tunlet) HandleRecords(_ *sdk.Host, r sdk.Records) {
	t.lost += r.Lost
	for record := range r.All() {
		t.calls++
		t.sum += record.Value
	}
}

// ProcessEnded tells what came: the last of it came before.
func (t *tunlet) ProcessEnded(h *sdk.Host, _ sdk.ProcessEnd) {
	h.Remark(0, "calls %d sum %d lost %d", t.calls, t.sum, t.lost)
}
