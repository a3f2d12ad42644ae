// SPDX-License-Identifier: Apache-2.0

package objfile

// LookBelow has a file look for its separate debug file below root instead of
// /usr/lib/debug.
func LookBelow(f *File, root string) { f.debugDirs.Roots = []string{root} }

// KeepFiles sets how many files a cache keeps open.
func KeepFiles(c *Cache, files int) { c.limit = files }

// KeepDigests sets how many digests are remembered.
func KeepDigests(d *Digests, digests int) { d.limit = digests }
