// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// goSettings are those of the Go runtime.
func goSettings() []Setting {
	return []Setting{{
		Name: "go.gc.percent", Min: 1, Max: mostGoPercent, Default: "100",
		Description: "Percent by which the heap grows over what was live before the next collection, as GOGC. " +
			"It counts from the end of the next collection on. A memory limit (GOMEMLIMIT) goes on to hold.",
		Has:   "programs of Go 1.19 and later, stripped ones too",
		WayIn: "written in place: the percentage and the least heap, two words that the end of each collection reads", WayBack: backWords,
		method: goPercent{},
	}}
}

const (
	// mostGoPercent is more than any program needs.
	mostGoPercent = 100_000
	// goHeapMinimum is the heap below which a program with GOGC=100 does not
	// collect (runtime.defaultHeapMinimum).
	goHeapMinimum = 4 << 20
	// goControllerBytes is how much of runtime.gcController is looked at:
	// gcPercent (4 bytes and 4 of padding), memoryLimit, heapMinimum. They stand
	// so since Go 1.19.
	goControllerBytes = 24
	// mostGoData bounds what is searched.
	mostGoData = 256 << 20
)

// errNoPacer says that the words were not found for certain.
var errNoPacer = errors.New("the collector's percentage cannot be told from other data")

// goPercent is the percentage of Go's collector. What it derives from that is
// computed anew at the end of each collection, from these words; until then what was
// derived stays in force. Each is aligned and read with one load, so there is no moment
// at which it must not be written.
type goPercent struct{}

// isController says whether bytes can be of runtime.gcController. The least heap follows
// from the percentage, wherever it was set: by GOGC, by debug.SetGCPercent, by Attune.
// With GOGC=off nothing is recognised, and there is nothing to be tuned.
func isController(data []byte) bool {
	percent := binary.LittleEndian.Uint64(data)
	limit := int64(binary.LittleEndian.Uint64(data[8:]))
	minimum := binary.LittleEndian.Uint64(data[16:])
	return percent >= 1 && percent <= math.MaxInt32 && limit > 0 && minimum == goHeapMinimum*percent/100
}

func (m goPercent) plan(_ context.Context, r *settingRequest) (*actuate.Plan, error) {
	if err := r.RefuseLater(r.setting.Name + " is written"); err != nil {
		return nil, err
	}
	image, controller, err := m.find(r.Process)
	if err != nil {
		return nil, err
	}
	percent, err := access.WordAt(r.Process, image, controller, "runtime.gcController.gcPercent", 4, access.Integer(r.value))
	if err != nil {
		return nil, err
	}
	least, err := access.WordAt(r.Process, image, controller+16, "runtime.gcController.heapMinimum", 8, access.Integer(goHeapMinimum*r.value/100))
	if err != nil {
		return nil, err
	}
	words, like := []access.Word{percent, least}, access.Integer(0)
	return &actuate.Plan{
		Undo: actuate.UndoWords(words), Way: access.WayMemory, Unchanged: access.AllThere(words),
		Old:  access.Decode(percent.Old, like),
		Run:  func(context.Context) (access.Done, error) { return access.DoneNow(writeWords(r.Process, words)) },
		Read: func() (*attunev1.Value, error) { return access.ReadBack(r.Process, percent, like) },
	}, nil
}

// find looks for the controller in the program, where Go code is.
func (goPercent) find(process access.Process) (image objfile.Image, address uint64, err error) {
	images, err := process.Images()
	if err != nil {
		return objfile.Image{}, 0, fmt.Errorf("mappings of process %d: %w", process.PID(), err)
	}
	for _, image := range images {
		segments, isGo, err := goData(image)
		if err != nil || !isGo {
			continue // it may be gone, and is no Go program's then
		}
		address, err := controllerIn(process, image, segments)
		return image, address, err
	}
	return objfile.Image{}, 0, fmt.Errorf("%w: no object of process %d is a Go program", access.ErrAbsent, process.PID())
}

// goData lists what an object writes to, if it holds Go code.
func goData(image objfile.Image) (segments []objfile.Segment, isGo bool, err error) {
	file, err := image.Open()
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = file.Close() }() // read only
	return file.Writable(), file.IsGo(), nil
}

// controllerIn finds the controller: by its symbol, or as the only place in the
// object's data that can be one, since stripped programs have no symbols of data.
func controllerIn(process access.Process, image objfile.Image, segments []objfile.Segment) (address uint64, err error) {
	symbol, err := image.Symbol("runtime.gcController", objfile.Variable)
	if err == nil {
		address := image.Address(symbol.Value)
		found, err := controllers(process, address, goControllerBytes)
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("%w: %s does not hold what Go 1.19 and later have there, or GOGC is off", errNoPacer, symbol.Name)
		}
		if err != nil {
			return 0, err
		}
		return found[0], nil
	}
	var all []uint64
	for _, s := range segments {
		found, err := controllers(process, image.Address(s.Address), s.Size)
		if err != nil {
			return 0, err
		}
		all = append(all, found...)
	}
	if len(all) != 1 {
		return 0, fmt.Errorf("%w: %d places of %s can be it; GOGC may be off, or it was built by Go before 1.19", errNoPacer, len(all), image.Name())
	}
	return all[0], nil
}

// controllers lists the places that can be a controller.
func controllers(process access.Process, address, size uint64) (found []uint64, err error) {
	if size > mostGoData {
		return nil, fmt.Errorf("%w: %d bytes of data are more than %d", errNoPacer, size, mostGoData)
	}
	data := make([]byte, size)
	if err := proc.Read(process, address, data); err != nil {
		return nil, err
	}
	for at := -address % 8; at+goControllerBytes <= size; at += 8 {
		if isController(data[at : at+goControllerBytes]) {
			found = append(found, address+at)
		}
	}
	return found, nil
}
