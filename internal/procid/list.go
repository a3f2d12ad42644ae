// SPDX-License-Identifier: Apache-2.0

package procid

import "fmt"

// List returns the ids of the processes that there are, kernel threads and
// zombies included, in no order.
func List() ([]int, error) {
	pids, err := AppendNumbers(nil, "/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	return pids, nil
}
