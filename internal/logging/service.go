// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"fmt"
	"io"
	"log/slog"
)

// The formats of a service's log.
const (
	FormatText = "text"
	FormatJSON = "json"
)

// ParseFormat checks the name of a format.
func ParseFormat(name string) (string, error) {
	if name != FormatText && name != FormatJSON {
		return "", fmt.Errorf("log format %q is neither text nor json", name)
	}
	return name, nil
}

// Service returns the log of a service, in one of the formats, in which no user takes
// the others' room.
func Service(to io.Writer, format string, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == FormatJSON {
		return slog.New(PerUser(slog.NewJSONHandler(to, options)))
	}
	return slog.New(PerUser(slog.NewTextHandler(to, options)))
}
