// SPDX-License-Identifier: Apache-2.0

package objfile

// Kept returns what read makes of the whole file, the same for all who ask for a T at the
// time: processes share the files that a Cache has open. They must not modify it.
func Kept[T any](f *File, read func() (*T, error)) (*T, error) {
	kept, _ := f.kept.LoadOrStore((*T)(nil), new(keptTable[T]))
	return kept.(*keptTable[T]).get(read) //nolint:forcetypeassert // what the key says
}
