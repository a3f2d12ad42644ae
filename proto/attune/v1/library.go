// SPDX-License-Identifier: Apache-2.0

package attunev1

// LibraryPatterns are patterns (path.Match) of the base names that a shared library has:
// as a distribution installs it, libgomp.so.1, and as a package of Python carries it along,
// libgomp-a34b3233.so.1.0.0: auditwheel puts eight digits of a checksum into its names. Eight,
// for libgomp-plugin-nvptx.so.1 is another library.
func LibraryPatterns(name string) []string {
	return []string{name + ".so*", name + "-????????.so*"}
}
