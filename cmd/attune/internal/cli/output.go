// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"

	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/outfile"
)

// OpenPlace is [outfile.OpenPlace] for the document that a flag names. Errors have the
// code for usage.
func OpenPlace(flag, path string) (outfile.Place, error) {
	p, err := outfile.OpenPlace(path)
	return p, unwritable(flag, err)
}

// OpenStream opens the file of a flag that is written to as things happen; nil if none is
// named. What it has stays until [outfile.Empty]. Errors have the code for usage.
func OpenStream(flag, path string) (*os.File, error) {
	if path == "" {
		return nil, nil
	}
	f, err := outfile.Open(path, os.O_CREATE)
	return f, unwritable(flag, err)
}

func unwritable(flag string, err error) error {
	if err == nil {
		return nil
	}
	return exitcode.UsageError(fmt.Errorf("--%s: %w", flag, err), "name a file that you may write to with --"+flag)
}
