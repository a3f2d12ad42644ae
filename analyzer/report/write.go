// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/attune-hpc/attune/internal/outfile"
)

// EncodeJSON writes the report as one indented JSON document.
func (r *Report) EncodeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// WriteJSON writes the report to a regular file, which is made or replaced as a
// whole or not at all. It is safe to call again while the session goes on.
func (r *Report) WriteJSON(path string) error {
	if err := outfile.Replace(path, r.EncodeJSON); err != nil {
		return fmt.Errorf("write report %s: %w; give a path in a writable directory with --report", path, err)
	}
	return nil
}

// WritePage is WriteJSON for the page of [Report.EncodeHTML].
func (r *Report) WritePage(path string) error {
	if err := outfile.Replace(path, r.EncodeHTML); err != nil {
		return fmt.Errorf("write page %s: %w; give a path in a writable directory with --html", path, err)
	}
	return nil
}
