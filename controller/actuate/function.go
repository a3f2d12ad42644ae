// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"fmt"

	"github.com/attune-hpc/attune/internal/objfile"
)

// lookup finds a symbol, in any of the forms of measure points, among the
// objects that the process maps now. What cannot be found is refused, not
// failed: nothing was touched.
func lookup(process Process, object, symbol string, kind objfile.SymbolKind) (objfile.Resolved, error) {
	images, err := process.Images()
	if err != nil {
		return objfile.Resolved{}, fmt.Errorf("mappings of process %d: %w", process.PID(), err)
	}
	found, err := objfile.LookupIn(images, object, symbol, kind)
	if err != nil {
		return found, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return found, nil
}
