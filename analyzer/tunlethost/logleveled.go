// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	hclog "github.com/hashicorp/go-hclog"
)

// maxLine bounds what is kept of a line whose end has not come.
const maxLine = 16 << 10

// leveledLogger logs what a tunlet writes to its standard error while it serves, each line
// with its own level, as go-plugin does with what comes before: a tunlet in Go has a stream
// over the connection for its standard error. It belongs to the goroutine that copies.
type leveledLogger struct {
	to   hclog.Logger
	rest []byte // of a line whose end has not come
}

// Write implements io.Writer.
func (w *leveledLogger) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	left := w.rest
	for {
		line, rest, whole := bytes.Cut(left, []byte("\n"))
		if !whole && len(line) <= maxLine {
			w.rest = append(w.rest[:0], line...)
			return len(p), nil
		}
		level, message, args := leveled(line)
		w.to.Log(level, message, args...)
		left = rest
	}
}

// leveled takes a line apart: hclog's JSON, as [sdk.Logger] writes it, or text that begins with
// its level in brackets. Any other line is for debugging.
func leveled(line []byte) (level hclog.Level, message string, args []any) {
	var fields map[string]any
	if bytes.HasPrefix(line, []byte("{")) && json.Unmarshal(line, &fields) == nil {
		if message, ok := fields["@message"].(string); ok {
			word, _ := fields["@level"].(string)
			for _, key := range slices.Sorted(maps.Keys(fields)) {
				if !strings.HasPrefix(key, "@") {
					args = append(args, key, fields[key])
				}
			}
			return hclog.LevelFromString(word), message, args
		}
	}
	message = string(bytes.TrimSpace(line))
	if word, rest, ok := strings.Cut(message, "]"); ok && strings.HasPrefix(word, "[") {
		if level := hclog.LevelFromString(word[1:]); level != hclog.NoLevel {
			return level, strings.TrimSpace(rest), nil
		}
	}
	return hclog.Debug, message, nil
}
