// SPDX-License-Identifier: Apache-2.0

package object

import "github.com/attune-hpc/attune/internal/objfile"

// Cache keeps files open, by device and inode. It is for one goroutine, and its
// owner closes it; nil keeps none.
type Cache map[file]*Object

// file tells files apart.
type file struct{ device, inode uint64 }

// Open opens the file of an image, unless it is open. The caller calls done when
// it needs it no more.
func (c Cache) Open(image objfile.Image) (o *Object, done func(), err error) {
	key := file{image.Device, image.Inode}
	if o := c[key]; o != nil {
		return o, func() {}, nil
	}
	if o, err = Open(image); err != nil {
		return nil, nil, err
	}
	if c == nil {
		return o, func() { _ = o.Close() }, nil // read only
	}
	c[key] = o
	return o, func() {}, nil
}

// Close closes all files.
func (c Cache) Close() {
	for _, o := range c {
		_ = o.Close() // read only
	}
}
