// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/singleflight"

	"github.com/attune-hpc/attune/internal/objfile"
)

// SlotTables remembers which GOT slots of an object match a point: all ranks
// of a node map the same libraries.
type SlotTables struct {
	reading singleflight.Group // one reader per file

	mu     sync.Mutex // guards tables
	tables map[slotKey][]objfile.Slot
}

type slotKey struct {
	file    objfile.FileVersion
	symbols string
}

// maxTables bounds the memory; most tables are empty.
const maxTables = 4096

// Matching returns the slots of an image whose symbol matches a pattern.
func (s *SlotTables) Matching(image objfile.Image, patterns ...string) ([]objfile.Slot, error) {
	key := slotKey{image.Version(), strings.Join(patterns, ",")}
	s.mu.Lock()
	slots, ok := s.tables[key]
	s.mu.Unlock()
	if ok {
		return slots, nil
	}
	read, err, _ := s.reading.Do(fmt.Sprint(key), func() (any, error) { return s.read(key, image, patterns) })
	if err != nil {
		return nil, err
	}
	return read.([]objfile.Slot), nil
}

func (s *SlotTables) read(key slotKey, image objfile.Image, patterns []string) ([]objfile.Slot, error) {
	slots, err := image.GOTSlots(patterns...)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tables == nil || len(s.tables) >= maxTables {
		s.tables = make(map[slotKey][]objfile.Slot)
	}
	s.tables[key] = slots
	return slots, nil
}
