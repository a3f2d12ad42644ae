// SPDX-License-Identifier: Apache-2.0

package tunlettest

// TB is what a harness needs of a test: *testing.T has it, and so has whoever
// runs the suite outside a test. Fatal and Fatalf end the goroutine.
type TB interface {
	Helper()
	Errorf(format string, arguments ...any)
	Fatalf(format string, arguments ...any)
	Fatal(arguments ...any)
	Cleanup(f func())
}

// Runner is a TB that has parts: *testing.T is one of T = *testing.T.
type Runner[T any] interface {
	TB
	// Run runs a part, and says whether it passed.
	Run(name string, f func(t T)) bool
}
