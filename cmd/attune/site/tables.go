// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/printable"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// maxCommand bounds what a table shows of a command line.
const maxCommand = 60

// WriteProto prints a message as JSON.
func WriteProto(p *cli.Env, m proto.Message) error {
	text, err := protojson.MarshalOptions{Multiline: true, UseProtoNames: true}.Marshal(m)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.Stdout, string(text))
	return err
}

// writeSessions prints registrations and sessions.
func writeSessions(p *cli.Env, list *attunev1.ListSessionsResponse) error {
	if len(list.GetRegistrations())+len(list.GetSessions()) == 0 {
		return p.Nothing("is registered: attune session start --app PATH does that")
	}
	w := cli.Table(p.Stdout)
	if len(list.GetRegistrations()) > 0 {
		fmt.Fprintln(w, "REGISTRATION\tAPPLICATION\tOWNER\tMODE\tTUNLETS\tONLY")
	}
	for _, r := range list.GetRegistrations() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.GetId(), dash(r.GetExecutable()), r.GetOwner().GetName(), r.GetMode(),
			allOr(r.GetTunlets()), dash(onlyText(r)))
	}
	if err := w.Flush(); err != nil || len(list.GetSessions()) == 0 {
		return err
	}
	fmt.Fprintln(p.Stdout)
	w = cli.Table(p.Stdout)
	fmt.Fprintln(w, "SESSION\tUSER\tSTATE\tFOR\tNODES\tPROCESSES\tKEPT\tGAIN\tCOMMAND")
	for _, s := range list.GetSessions() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", s.GetId(), dash(s.GetUser().GetName()), stateText(s.GetState()), age(s),
			nodesText(s.GetHosts()), processesText(s), s.GetKept(), gainText(s.GetGain()), commandText(s.GetCommandLine()))
	}
	return w.Flush()
}

// writeSession prints what a session's report does not say.
func writeSession(out io.Writer, s *attunev1.SessionRecord) error {
	_, err := fmt.Fprintf(out, "Session %s of %s, %s, %s long, on %s.\n", s.GetId(), dash(s.GetUser().GetName()), stateText(s.GetState()), age(s),
		dash(strings.Join(s.GetHosts(), ", ")))
	return err
}

// writeStopped says what was ended.
func writeStopped(out io.Writer, done *attunev1.StopSessionResponse) error {
	for _, s := range done.GetSessions() {
		fmt.Fprintf(out, "Session %s has ended: %s, %d changes kept.\n", s.GetId(), processesText(s), s.GetKept())
	}
	if r := done.GetRegistration(); r != nil {
		fmt.Fprintf(out, "Executions of %s are left alone from now on.\n", r.GetExecutable())
	}
	return nil
}

// onlyText says what a registration is restricted to.
func onlyText(r *attunev1.Registration) string {
	var only []string
	if r.GetUser() != "" {
		only = append(only, "user "+r.GetUser())
	}
	if r.GetBatchOnly() {
		only = append(only, "batch")
	}
	if sum := r.GetSha256(); sum != "" {
		only = append(only, "sha256 "+sum[:min(8, len(sum))])
	}
	if r.GetArguments() != "" {
		only = append(only, "args "+r.GetArguments())
	}
	if r.GetObjective() != "" {
		only = append(only, "objective "+r.GetObjective())
	}
	if r.GetJob() != nil {
		only = append(only, r.GetJob().Key())
	}
	return strings.Join(only, ", ")
}

func stateText(s attunev1.SessionState) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "SESSION_STATE_"))
}

// endOf is when a session ended; of one that goes on, now.
func endOf(s *attunev1.SessionRecord, now time.Time) time.Time {
	if s.GetEndedUnixNano() != 0 {
		return time.Unix(0, s.GetEndedUnixNano())
	}
	return now
}

// lasted is how long a session has lasted.
func lasted(s *attunev1.SessionRecord, now time.Time) time.Duration {
	return endOf(s, now).Sub(time.Unix(0, s.GetStartedUnixNano()))
}

// age is how long a session has lasted, for people.
func age(s *attunev1.SessionRecord) string {
	d := lasted(s, time.Now())
	if d < time.Minute {
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

func processesText(s *attunev1.SessionRecord) string {
	if s.GetRunning() == s.GetProcesses() {
		return fmt.Sprint(s.GetProcesses())
	}
	return fmt.Sprintf("%d of %d", s.GetRunning(), s.GetProcesses())
}

// nodesText names one node and counts the others.
func nodesText(hosts []string) string {
	switch len(hosts) {
	case 0:
		return "-"
	case 1:
		return hosts[0]
	}
	return fmt.Sprintf("%s +%d", hosts[0], len(hosts)-1)
}

func gainText(gain float64) string {
	if gain == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3gx", gain)
}

func commandText(command []string) string {
	text := printable.Line(strings.Join(command, " "))
	if runes := []rune(text); len(runes) > maxCommand {
		return string(runes[:maxCommand-1]) + "…"
	}
	return text
}

func allOr(names []string) string {
	if len(names) == 0 {
		return "all"
	}
	return strings.Join(names, ",")
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return printable.Line(text)
}
