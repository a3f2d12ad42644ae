// SPDX-License-Identifier: Apache-2.0

// Package live shows a running session in a few lines at the bottom of the
// terminal. Those lines are taken out of the terminal's scroll region, so that
// the program's output scrolls above them; for programs that use the screen
// themselves there is the timeline.
//
// One goroutine draws; Pause and Resume may be called from any other. One
// mutex guards what is on the screen.
package live
