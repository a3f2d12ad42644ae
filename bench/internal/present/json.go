// SPDX-License-Identifier: Apache-2.0

package present

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
)

// WriteJSON writes what was measured into a file, indented. An empty path
// writes nothing.
func WriteJSON(path string, document any) error {
	if path == "" {
		return nil
	}
	data, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
