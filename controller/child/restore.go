// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"errors"
	"fmt"
)

// Restored is what became of one change that a dead controller had left behind; without a
// change, why journals could not be read or written.
type Restored struct {
	Change, Knob string
	PID          int
	Err          error // nil: the old values are back, or the process has ended
}

// Restore undoes, in a process that does nothing else, what controllers that live no
// more left behind in a directory of journals; held, also what they hold for the next.
func (p *Pool) Restore(ctx context.Context, dir string, held bool) (all []Restored, err error) {
	process, err := p.take(ctx)
	if err != nil {
		return nil, err
	}
	go func() { // ends with the process
		_ = process.listen(newEcho(p.log).handle)
	}()
	var answer []restored
	_, err = process.ask(ctx, restore, restoring{dir, held}, noFD, &answer)
	if err != nil {
		err = fmt.Errorf("restore: %w", err)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
	defer cancel()
	err = errors.Join(err, process.end(end))
	for _, r := range answer {
		one := Restored{Change: r.Change, Knob: r.Knob, PID: r.PID}
		if r.Error != "" {
			one.Err = errors.New(r.Error)
		}
		all = append(all, one)
	}
	return all, err
}
