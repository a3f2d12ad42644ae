// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package track_test

import (
	"testing"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/controller/track"
)

func mustLoadBPF(t *testing.T) track.Source {
	t.Helper()
	events, err := procevent.New(procevent.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return track.FromBPF(events)
}

func TestBPF(t *testing.T) { testSource(t, mustLoadBPF) }

func TestBPFMissesNothing(t *testing.T) { testStorms(t, mustLoadBPF) }
