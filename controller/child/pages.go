// SPDX-License-Identifier: Apache-2.0

package child

import (
	"encoding/json"
	"os"

	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/controller/actuate"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// pageBytes is about how much of a list goes in one message.
const pageBytes = 256 << 10

// listProcesses tells of the processes under control.
func (*session) listProcesses(c *controller.Controller, from page, _ *os.File) (any, error) {
	return pageOf(from.From, c.Processes(), func(p *attunev1.Process) ([]byte, error) { return encoded(p) })
}

// listChanges tells of the changes in force.
func (*session) listChanges(c *controller.Controller, from page, _ *os.File) (any, error) {
	return pageOf(from.From, c.Changes(), func(one actuate.InForce) ([]byte, error) { return json.Marshal(one) })
}

// pageOf is the page of a list that begins somewhere.
func pageOf[T any](from int, all []T, encode func(T) ([]byte, error)) (page, error) {
	told := page{From: from, Of: len(all)}
	for size, next := 0, max(from, 0); next < len(all) && size < pageBytes; next++ {
		text, err := encode(all[next])
		if err != nil {
			return told, err
		}
		told.Items = append(told.Items, text)
		size += len(text)
	}
	return told, nil
}
