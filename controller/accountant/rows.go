// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/attune-hpc/attune/internal/account"
)

// rows writes a time series. Whoever reads it may be slow, or not read at all: lines
// that do not fit into the queue are lost and counted, and nobody waits.
type rows struct {
	queue   chan account.Row
	lost    uint64
	written chan result
}

// result is what became of all lines.
type result struct {
	written uint64
	err     error
}

const (
	queuedRows = 1024
	// rowsTime is how long the last lines may take to be written.
	rowsTime = time.Second
)

func newRows(to io.Writer, csv bool) *rows {
	r := &rows{queue: make(chan account.Row, queuedRows), written: make(chan result, 1)}
	go r.write(to, csv)
	return r
}

// write writes each line with one call, until one fails.
func (r *rows) write(to io.Writer, csv bool) {
	var end result
	line := account.Row.JSON
	if csv {
		line = account.Row.CSV
		_, end.err = to.Write(account.RowNames())
	}
	for row := range r.queue {
		text, err := line(row)
		if err == nil && end.err == nil {
			_, err = to.Write(text)
		}
		if end.err == nil {
			if end.err = err; err == nil {
				end.written++
			}
		}
	}
	r.written <- end
}

func (r *rows) put(row account.Row) {
	select {
	case r.queue <- row:
	default:
		r.lost++
	}
}

// end returns how many lines were written, and what became of the others.
func (r *rows) end() (uint64, error) {
	close(r.queue)
	select {
	case end := <-r.written:
		if end.err != nil {
			return end.written, fmt.Errorf("cut off: %w", end.err)
		}
		if r.lost > 0 {
			return end.written, fmt.Errorf("%d lines were lost: they were not read fast enough", r.lost)
		}
		return end.written, nil
	case <-time.After(rowsTime):
		return 0, errors.New("cut off: nobody reads it")
	}
}
