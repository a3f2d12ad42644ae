// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"errors"
	"fmt"
)

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
	_, err = process.ask(ctx, restore, restoring{dir, held}, noFD, &all)
	if err != nil {
		err = fmt.Errorf("restore: %w", err)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
	defer cancel()
	return all, errors.Join(err, process.end(end))
}
