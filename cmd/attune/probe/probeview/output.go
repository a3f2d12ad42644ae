// SPDX-License-Identifier: Apache-2.0

package probeview

import (
	"encoding/json"
	"io"
)

// output writes until it fails once; the error is kept.
type output struct {
	to  io.Writer
	err *error
}

func (o output) Write(text []byte) (n int, err error) {
	if *o.err == nil {
		n, *o.err = o.to.Write(text)
	}
	return n, *o.err
}

// Err is the first error of writing, after which nothing is written.
func (p *Printer) Err() error { return p.err }

// line writes one JSON document, of strings and numbers.
func (p *Printer) line(document map[string]any) {
	encoder := json.NewEncoder(p.options.Output)
	encoder.SetEscapeHTML(false) // conditions hold < and >
	_ = encoder.Encode(document) // Err has it
}
