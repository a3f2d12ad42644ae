// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"container/list"
	"errors"
	"fmt"
	"os"
	"sync"
)

// cacheFiles is how many files a Cache keeps open, each with one descriptor.
const cacheFiles = 128

// Cache keeps ELF files open, by device, inode and modification time, so that
// the libraries that all processes share are read once. It is safe for
// concurrent use. A nil *Cache is valid and keeps nothing.
type Cache struct {
	limit int

	mu    sync.Mutex // guards files and order
	files map[fileKey]*list.Element
	order *list.List // of *File, the most recently used first
}

// NewCache returns an empty cache. Its owner closes it.
func NewCache() *Cache {
	return &Cache{limit: cacheFiles, files: make(map[fileKey]*list.Element), order: list.New()}
}

// Open is the package's Open through the cache. The caller closes the File.
func (c *Cache) Open(path string) (*File, error) {
	file, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	return c.OpenFile(file)
}

// OpenFile is the package's OpenFile through the cache.
func (c *Cache) OpenFile(file *os.File) (*File, error) {
	if c == nil {
		return OpenFile(file)
	}
	key, err := keyOf(file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", file.Name(), err), file.Close())
	}
	if known := c.lookup(key); known != nil {
		return known, file.Close()
	}
	opened, err := OpenFile(file)
	if err != nil {
		return nil, err
	}
	return opened, c.keep(opened)
}

func (c *Cache) lookup(key fileKey) *File {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.files[key]
	if !ok {
		return nil
	}
	c.order.MoveToFront(element)
	file := element.Value.(*File)
	file.users.Add(1)
	return file
}

// keep adds a file unless another goroutine has been faster, and lets go of
// the least recently used ones.
func (c *Cache) keep(file *File) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.files[file.key]; ok || c.limit == 0 {
		return nil
	}
	file.users.Add(1)
	c.files[file.key] = c.order.PushFront(file)
	var errs []error
	for c.order.Len() > c.limit {
		errs = append(errs, c.drop(c.order.Back()))
	}
	return errors.Join(errs...)
}

// drop forgets one file. The caller holds mu.
func (c *Cache) drop(element *list.Element) error {
	file := c.order.Remove(element).(*File)
	delete(c.files, file.key)
	return file.Close()
}

// Close lets go of all files and keeps none from then on. Files still in use
// stay open until their users close them.
func (c *Cache) Close() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = 0
	var errs []error
	for c.order.Len() > 0 {
		errs = append(errs, c.drop(c.order.Front()))
	}
	return errors.Join(errs...)
}
