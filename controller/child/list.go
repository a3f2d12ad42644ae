// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/controller/actuate"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// listPatience bounds a look at a list: somebody waits who looks at all sessions.
// maxListed bounds the list.
const (
	listPatience = time.Second
	maxListed    = 1 << 14
)

// Processes tells what is known of the processes under control now; none if their
// controller does not say.
func (c *Controller) Processes() []*attunev1.Process {
	return listed(c, processes, func(text []byte) (*attunev1.Process, error) {
		p := new(attunev1.Process)
		return p, proto.Unmarshal(text, p)
	})
}

// Changes tells of the changes that are in force now, the earliest first; none if their
// controller does not say.
func (c *Controller) Changes() []actuate.InForce {
	all := listed(c, changes, func(text []byte) (one actuate.InForce, err error) {
		err = json.Unmarshal(text, &one)
		for _, word := range []*string{&one.ID, &one.Knob, &one.Old, &one.New, &one.Where} {
			*word = clean(*word)
		}
		one.By, one.Registration = "", c.config.Session.Registration // whatever it says
		return one, err
	})
	return slices.DeleteFunc(all, func(one actuate.InForce) bool { return !c.roster.hasPID(one.PID) })
}

// listed asks for a list of the process, page by page, as far as it answers.
func listed[T any](c *Controller, k kind, decode func([]byte) (T, error)) (all []T) {
	ctx, cancel := context.WithTimeout(c.ctx, listPatience)
	defer cancel()
	for next := (page{Of: 1}); next.From < next.Of && len(all) < maxListed; {
		var got page
		if _, err := c.process.ask(ctx, k, page{From: next.From}, noFD, &got); err != nil {
			c.log.Debug("list of a session", "of", k, "error", err)
			return all
		}
		for _, text := range got.Items {
			one, err := decode(text)
			if err != nil {
				c.log.Debug("list of a session", "of", k, "error", err)
				return all
			}
			all = append(all, one)
		}
		if len(got.Items) == 0 {
			return all // the rest has ended
		}
		next = page{From: next.From + len(got.Items), Of: got.Of}
	}
	return all
}
