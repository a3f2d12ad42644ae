// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// listPatience bounds a look at the processes: somebody waits who looks at all
// sessions. maxListed bounds the list.
const (
	listPatience = time.Second
	maxListed    = 1 << 14
)

// Processes tells what is known of the processes under control now; none if their
// controller does not say.
func (c *Controller) Processes() (all []*attunev1.Process) {
	ctx, cancel := context.WithTimeout(c.ctx, listPatience)
	defer cancel()
	for next := (page{Of: 1}); next.From < next.Of && len(all) < maxListed; {
		var got page
		if _, err := c.process.ask(ctx, processes, page{From: next.From}, noFD, &got); err != nil {
			c.log.Debug("list of processes", "error", err)
			return all
		}
		for _, text := range got.Processes {
			p := new(attunev1.Process)
			if err := proto.Unmarshal(text, p); err != nil {
				c.log.Debug("list of processes", "error", err)
				return all
			}
			all = append(all, p)
		}
		if len(got.Processes) == 0 {
			return all // the rest has ended
		}
		next = page{From: next.From + len(got.Processes), Of: got.Of}
	}
	return all
}
