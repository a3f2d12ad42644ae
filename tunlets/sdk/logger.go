// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"log/slog"
	"os"
	"strings"
)

// Logger returns a logger whose messages are in the Analyzer's log, with their level: for
// those who look after Attune, while [Host.Remark] is for those whose program is tuned, and
// [Host.Explain] for the tunlet's author. Of a tunlet's lines, 20 a second are logged. It is
// safe for use by several goroutines; before [Serve] it is not to be used.
func Logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(standardError{}, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: forHost}))
}

// standardError is os.Stderr as it is at each write: Serve replaces it by a stream to the
// Analyzer.
type standardError struct{}

func (standardError) Write(p []byte) (int, error) { return os.Stderr.Write(p) }

// forHost gives the parts of a message the names that the host knows them by, hclog's.
func forHost(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		a.Key = "@timestamp"
	case slog.LevelKey:
		return slog.String("@level", strings.ToLower(a.Value.String()))
	case slog.MessageKey:
		a.Key = "@message"
	}
	return a
}
