// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"path"
	"sync"

	"github.com/attune-hpc/attune/internal/objfile"
)

// slotTables remembers the GOT slots of objects, by inode: all ranks of a node
// map the same libraries, and a tunlet asks for many functions.
type slotTables struct {
	mu     sync.Mutex // guards tables
	tables map[fileKey]map[string][]objfile.Slot
}

type fileKey struct{ device, inode uint64 }

// maxTables bounds the memory: a large library has some thousand slots.
const maxTables = 256

// matching returns the slots of an image whose symbol matches a pattern.
func (s *slotTables) matching(image objfile.Image, pattern string) ([]objfile.Slot, error) {
	table, err := s.table(image)
	if err != nil {
		return nil, err
	}
	if slots, ok := table[pattern]; ok {
		return slots, nil
	}
	var out []objfile.Slot
	for symbol, slots := range table {
		matched, err := path.Match(pattern, symbol)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", pattern, err)
		}
		if matched {
			out = append(out, slots...)
		}
	}
	return out, nil
}

func (s *slotTables) table(image objfile.Image) (map[string][]objfile.Slot, error) {
	key := fileKey{image.Device, image.Inode}
	s.mu.Lock()
	table, ok := s.tables[key]
	s.mu.Unlock()
	if ok {
		return table, nil
	}
	file, err := image.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read only
	slots, err := file.GOTSlots("*")
	if err != nil {
		return nil, fmt.Errorf("GOT of %s: %w", image.Path, err)
	}
	table = make(map[string][]objfile.Slot)
	for _, slot := range slots {
		table[slot.Symbol] = append(table[slot.Symbol], slot)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tables == nil || len(s.tables) >= maxTables {
		s.tables = make(map[fileKey]map[string][]objfile.Slot)
	}
	s.tables[key] = table
	return table, nil
}
