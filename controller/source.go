// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"log/slog"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/controller/track"
)

// findSource returns the best source of process events that this user may have. Nil:
// /proc is polled.
func findSource(config Config, log *slog.Logger) track.Source {
	if config.Source != nil {
		return config.Source
	}
	if config.UseBPF {
		events, err := procevent.New(procevent.Options{})
		if err == nil {
			return track.FromBPF(events)
		}
		log.Info("no process events by BPF", "reason", err)
	}
	connector, err := track.NewConnector()
	if err != nil {
		log.Info("no process connector, polling /proc", "reason", err)
		return nil
	}
	return connector
}
