// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package controller

import (
	"testing"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Of a program that makes more records than the kernel's ring can hold, each one
// comes or is told as lost, to the last before its end.
func TestLostRecordsOfUprobesAreTold(t *testing.T) {
	tests := []struct {
		name  string
		ring  uint32
		loses bool
	}{{"ring of a page", 4096, true}, {"ring as it is", 0, false}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := start(t, func(c *Config) { c.UseBPF, c.uprobes = true, uprobe.Options{RingBytes: test.ring} })
			spec := call("own_work", false)
			spec.Delivery = attunev1.Delivery_DELIVERY_EVENT
			b.addPoint(t, 3, spec)
			target := targets.Start(t, targets.Build(t, "testdata/calls.c", "-static"), b.controller.Environment()...)
			if err := b.controller.Follow(target.PID); err != nil {
				t.Fatal(err)
			}
			if status := b.placed(t, 3); status.GetState() != attunev1.PointState_POINT_STATE_PLACED {
				t.Fatalf("point: %v", status)
			}
			const calls = 30_000
			target.Ask(t, "-30000")
			target.EndWell(t)
			var records, lost uint64
			ended := event(t, b, "end", func(m *attunev1.PublishRequest) (*attunev1.ProcessEnded, bool) {
				records += attunev1.CountRecords(m.GetRecords().GetRecords())
				lost += m.GetRecords().GetLostBpf()
				return m.GetProcessEnded(), m.GetProcessEnded() != nil
			})
			if records+lost != calls || lost != ended.GetLostBpf() || (lost > 0) != test.loses {
				t.Errorf("%d records, %d lost, %d at the end; want %d in all", records, lost, ended.GetLostBpf(), calls)
			}
			b.stop(t)
		})
	}
}
