// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/controller/track"
)

// source of process events: the best that this user may have. Nil: /proc is
// polled.
func (c *Controller) source() track.Source {
	if c.config.Source != nil {
		return c.config.Source
	}
	if c.config.UseBPF {
		events, err := procevent.New(procevent.Options{})
		if err == nil {
			return track.FromBPF(events)
		}
		c.log.Info("no process events by BPF", "reason", err)
	}
	connector, err := track.NewConnector()
	if err != nil {
		c.log.Info("no process connector, polling /proc", "reason", err)
		return nil
	}
	return connector
}
