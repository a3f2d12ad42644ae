// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
)

// The marks between which a page holds what is generated.
const (
	pageBegin = "<!-- begin %s: generated from proto/attune/series -->\n"
	pageEnd   = "<!-- end %s -->\n"
)

// writePage replaces the generated parts of the reference page.
func writePage(path string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, part := range []string{"signals", "details"} {
		text, err := filled(part + ".tmpl")
		if err != nil {
			return err
		}
		if page, err = replaced(page, part, text); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return os.WriteFile(path, page, 0o644)
}

// replaced is a page with another text between the marks of a part.
func replaced(page []byte, part string, text []byte) ([]byte, error) {
	begin, end := fmt.Appendf(nil, pageBegin, part), fmt.Appendf(nil, pageEnd, part)
	before, rest, found := bytes.Cut(page, begin)
	_, after, ended := bytes.Cut(rest, end)
	if !found || !ended {
		return nil, fmt.Errorf("without the lines %q and %q", begin, end)
	}
	return bytes.Join([][]byte{before, begin, text, end, after}, nil), nil
}
