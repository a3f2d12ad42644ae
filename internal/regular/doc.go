// SPDX-License-Identifier: Apache-2.0

// Package regular opens files that others have made and may replace at any moment, and reads
// them whole. Its functions are safe for concurrent use.
//
// To open a device may start it, and to open a pipe or a terminal may be noticed at its other
// end. So a file is held first, by O_PATH, which opens nothing; then it is looked at; and what is
// opened at last is that very file, whatever has its name by then.
package regular
