// SPDX-License-Identifier: Apache-2.0

// Package loaderlist reads the dynamic loader's list of the objects that it has loaded for
// a program, from outside. Objects in a namespace of their own (dlmopen) are not in it. The
// process may change the list meanwhile, and could spoil it.
package loaderlist

import (
	"encoding/binary"

	"github.com/attune-hpc/attune/internal/objfile"
)

// maxObjects bounds the list, which a hostile process could make endless, and with which each
// of its objects is compared; objfile takes no more of those.
const maxObjects = 4096

// Entry is an object in the list (struct link_map: l_addr, l_name, l_ld, l_next).
type Entry struct {
	// Address of the entry, of which Bias and Dynamic are l_addr and l_ld.
	Address, Bias, Dynamic uint64
}

// Is says whether the entry is the object's.
func (e Entry) Is(object objfile.Image) bool {
	return e.Bias == object.Bias && e.Dynamic >= object.Start && e.Dynamic < object.End
}

// Read returns the list of a process whose objects are images and whose memory read reads;
// with an error, as far as it could be read.
func Read(images []objfile.Image, read func(address uint64, buf []byte) error) (list []Entry, err error) {
	head, err := objfile.ResolveIn(images, "ld*.so*", "_r_debug", objfile.Variable)
	if err != nil {
		return nil, err
	}
	content := make([]byte, 32)
	if err := read(head.Address+8, content[:8]); err != nil { // r_map
		return nil, err
	}
	next := binary.LittleEndian.Uint64(content)
	for next != 0 && len(list) < maxObjects {
		if err := read(next, content); err != nil {
			return list, err
		}
		list = append(list, Entry{next, binary.LittleEndian.Uint64(content), binary.LittleEndian.Uint64(content[16:])})
		next = binary.LittleEndian.Uint64(content[24:])
	}
	return list, nil
}
