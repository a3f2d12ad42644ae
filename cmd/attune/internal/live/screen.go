// SPDX-License-Identifier: Apache-2.0

package live

import (
	"bytes"
	"fmt"
)

// screen composes what makes the bottom of a terminal ours and draws there.
// Every method appends to a buffer that goes out in one write, so that the
// program's output does not come in between.
type screen struct {
	rows, columns int // of the terminal when it was taken; 0: not taken
	out           bytes.Buffer
}

// small is the least number of rows that leaves the program some.
const small = 3 * height

// resize takes the bottom lines of a terminal of this size. False: too small.
func (s *screen) resize(rows, columns int) bool {
	if rows < small || columns < 20 {
		s.release()
		return false
	}
	if rows == s.rows && columns == s.columns {
		return true
	}
	s.release()
	s.rows, s.columns = rows, columns
	// Scroll the program's last lines out of the way, go back up by as much,
	// and keep the cursor there: setting the region moves it.
	for range height {
		s.out.WriteByte('\n')
	}
	fmt.Fprintf(&s.out, "\x1b[%dA\x1b7\x1b[1;%dr\x1b8", height, rows-height)
	return true
}

// draw writes the lines without moving the program's cursor.
func (s *screen) draw(lines []string) {
	s.out.WriteString("\x1b7")
	for i, line := range lines {
		fmt.Fprintf(&s.out, "\x1b[%d;1H\x1b[2K\x1b[2m%s\x1b[0m", s.rows-height+1+i, line)
	}
	s.out.WriteString("\x1b8")
}

// release gives the lines back and clears them.
func (s *screen) release() {
	if s.rows == 0 {
		return
	}
	fmt.Fprintf(&s.out, "\x1b7\x1b[r\x1b[%d;1H\x1b[J\x1b8", s.rows-height+1)
	s.rows, s.columns = 0, 0
}
