// SPDX-License-Identifier: Apache-2.0

package catalogue

import "github.com/attune-hpc/attune/bench/internal/measure"

// stdioCases write a line at a time.
func stdioCases() []Case {
	writer := []string{"{bin}/line_writer", "{seconds}"}
	return []Case{
		{
			Name: "stdio/C", Tunlet: "stdio", Unit: "lines/s", Format: measure.Native(),
			Sources: []Source{{Name: "line_writer"}},
			Command: append(writer[:2:2], "line"), Best: Static{Command: append(writer[:2:2], "full")},
		},
		{
			Name: "stdio/cut", Tunlet: "stdio", Debian: true, Unit: "lines/s",
			Format:  measure.Summary(`^(?P<count>\d+) lines in (?P<seconds>\S+) s`),
			Command: cut("stdbuf -oL cut"), Best: Static{Command: cut("stdbuf -o64K cut")},
		},
	}
}

// cut takes two fields of each line, and has somebody count them.
func cut(command string) []string {
	return shell(`echo "$(yes 'some fields of a line, and more' | timeout {seconds} ` + command + ` -d' ' -f1,7 | wc -l) lines in {seconds} s"`)
}
