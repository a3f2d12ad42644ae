// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/account"
)

// TestNobodyReadsTheSeries: whoever writes lines does not wait, and is told.
func TestNobodyReadsTheSeries(t *testing.T) {
	reader, writer := io.Pipe()
	r := newRows(writer, false)
	for range 3 * queuedRows {
		r.put(account.Row{})
	}
	if r.lost < queuedRows {
		t.Errorf("%d lines are lost", r.lost)
	}
	if _, err := r.end(); err == nil || !strings.Contains(err.Error(), "nobody reads it") {
		t.Errorf("the end is %v", err)
	}
	reader.Close()
	if end := <-r.written; end.written != 0 || !errors.Is(end.err, io.ErrClosedPipe) {
		t.Errorf("%+v", end)
	}
}
