// SPDX-License-Identifier: Apache-2.0

package objfile

// Elsewhere returns the object whose own function of a name a slot's value is, if
// function is not in that object. A name says little of what a slot leads to: an
// allocator of the program's own stands before the C library's, a tracer before MPI,
// and each of several plug-ins may have a function of the same name.
func Elsewhere(images []Image, name string, function, value uint64) (Image, bool) {
	for _, image := range images {
		switch {
		case value < image.Start || value >= image.End:
			continue
		case function >= image.Start && function < image.End:
			return Image{}, false
		}
		symbol, err := image.Symbol(name, Function)
		return image, err == nil && image.Address(symbol.Value) == value
	}
	return Image{}, false
}
