// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
)

// ErrNoCollector means that there is no state of a collector that is known.
var ErrNoCollector = errors.New("no collector of CPython 3.11 to 3.13")

// Where the state of the collector has what, in bytes from the first generation on.
const (
	generations = 3
	threshold   = 16 // in a generation of generationBytes, behind the head of its list
	// generationBytes are the head, a threshold and a count.
	generationBytes = 24
	youngest        = generations * generationBytes // the pointer to the first generation
	statistics      = youngest + 8 + generationBytes
	// statisticsBytes are three counts of a generation, that of its collections first.
	statisticsBytes = 24
	longLivedAt     = statistics + generations*statisticsBytes + 3*8
	pendingAt       = longLivedAt + 8

	// stateBytes is how much of the state is read.
	stateBytes = pendingAt + 8
	// maxRuntime is more than _PyRuntime has in any version, some 460 kB in 3.12.
	maxRuntime = 4 << 20
)

// Named says whether a path is that of a program or library that may be an interpreter.
func Named(object string) bool {
	name := path.Base(object)
	return strings.HasPrefix(name, "python") || strings.HasPrefix(name, "libpython")
}

// Program is a process whose memory and objects can be read.
type Program interface {
	proc.Holder
	Images() ([]objfile.Image, error)
}

// Locate returns the address of the state of the collector in a process.
// [ErrNoCollector] if there is none that is known.
func Locate(p Program) (state uint64, err error) {
	images, err := p.Images()
	if err != nil {
		return 0, err
	}
	err = ErrNoCollector
	for _, image := range images {
		if !Named(image.Path) {
			continue
		}
		if state, err = locate(p, image); !errors.Is(err, ErrNoCollector) {
			return state, err
		}
	}
	return 0, err
}

// locate looks for it in an object.
func locate(p Program, image objfile.Image) (state uint64, err error) {
	symbol, err := image.Symbol("_PyRuntime", objfile.Variable)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNoCollector, err)
	}
	if symbol.Size < stateBytes || symbol.Size > maxRuntime {
		return 0, fmt.Errorf("%w: _PyRuntime of %s has %d bytes", ErrNoCollector, image.Name(), symbol.Size)
	}
	if err := checkVersion(p, image); err != nil {
		return 0, err
	}
	runtime, address := make([]byte, symbol.Size), image.Address(symbol.Value)
	if err := proc.Read(p, address, runtime); err != nil {
		return 0, err
	}
	return find(runtime, address)
}

// checkVersion refuses an interpreter whose layout is not known to be this one: what a
// later version keeps there may look like it. 3.11 and later say which they are.
func checkVersion(p Program, image objfile.Image) error {
	symbol, err := image.Symbol("Py_Version", objfile.Variable)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoCollector, err)
	}
	version := make([]byte, 8)
	if err := proc.Read(p, image.Address(symbol.Value), version); err != nil {
		return err
	}
	major, minor := version[3], version[2]
	if major != 3 || minor < 11 || minor > 13 {
		return fmt.Errorf("%w: %s is CPython %d.%d", ErrNoCollector, image.Name(), major, minor)
	}
	return nil
}

// Read reads the state of the collector that [Locate] has found.
func Read(p proc.Holder, state uint64) (c Collector, err error) {
	data := make([]byte, stateBytes)
	if err := proc.Read(p, state, data); err != nil {
		return c, err
	}
	return parse(data, state)
}

// find returns the address of the collector's state in the content of _PyRuntime, which
// lies at an address. [ErrNoCollector] if no place, or more than one, looks like it.
func find(runtime []byte, address uint64) (state uint64, err error) {
	found := 0
	for offset := 0; offset+stateBytes <= len(runtime); offset += 8 {
		at := address + uint64(offset)
		if word(runtime, offset+youngest) != at {
			continue
		}
		if _, err := parse(runtime[offset:offset+stateBytes], at); err == nil {
			state = at
			found++
		}
	}
	if found != 1 {
		return 0, fmt.Errorf("%w: %d places look like it", ErrNoCollector, found)
	}
	return state, nil
}

// Collector is what a collector has counted.
type Collector struct {
	// thresholds of the generations: new containers, and collections of the generation
	// before; 0: there is none.
	thresholds [generations]uint64
	// collections of each generation.
	collections [generations]uint64
	// longLived objects have survived the last collection of all, pending ones one of
	// the generation before since.
	longLived, pending uint64
}

// parse reads the state that lies at an address. [ErrNoCollector] if it cannot be one.
func parse(state []byte, address uint64) (c Collector, err error) {
	if len(state) < stateBytes || word(state, youngest) != address {
		return c, ErrNoCollector
	}
	valid := true
	count := func(offset int) uint64 { // a Py_ssize_t that is no negative number
		n := word(state, offset)
		valid = valid && int64(n) >= 0
		return n
	}
	for g := range generations {
		set := int32(binary.LittleEndian.Uint32(state[g*generationBytes+threshold:]))
		c.thresholds[g] = uint64(max(0, set))
		c.collections[g] = count(statistics + g*statisticsBytes)
	}
	c.longLived, c.pending = count(longLivedAt), count(pendingAt)
	if !valid {
		return Collector{}, fmt.Errorf("%w: negative counts", ErrNoCollector)
	}
	return c, nil
}

// maxVisits bounds the visits between two moments, so that no sum overflows.
const maxVisits = 1e15

// VisitsSince is how many objects the collector has looked at since an earlier moment,
// about. A collection of the youngest generation looks at the new containers that its
// threshold allows, one of the next at those of so many collections before, and one of
// all at what had survived such: before, or by what it left. What has died or been
// frozen meanwhile is counted, what was made in place of older containers, which the
// interpreter does not count, is not. False if the counts are not those of one collector.
func (c Collector) VisitsSince(before Collector) (visits uint64, ok bool) {
	all := max(float64(before.longLived)+float64(before.pending), float64(c.longLived))
	young := float64(c.thresholds[0])
	sum := 0.0
	for g, each := range [generations]float64{young, young * (1 + float64(c.thresholds[1])), all} {
		if c.collections[g] < before.collections[g] {
			return 0, false
		}
		sum += float64(c.collections[g]-before.collections[g]) * each
	}
	return uint64(min(sum, maxVisits)), true
}

func word(data []byte, offset int) uint64 { return binary.LittleEndian.Uint64(data[offset:]) }
