// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/cmd/attune/internal/archived"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/digest"
	"github.com/attune-hpc/attune/internal/outfile"
	"github.com/attune-hpc/attune/internal/printable"
	"github.com/attune-hpc/attune/internal/provenance"
	"github.com/attune-hpc/attune/internal/quantity"
)

// outputs are the places that the account goes to.
type outputs struct {
	stderr io.Writer // nil: nothing is to be said
	json   outfile.Place
	series *os.File           // nil: none
	record *provenance.Record // nil: none
	crate  *os.Root           // directory; nil: none
	watch  *watch             // nil: nothing is shown meanwhile
	task   *archived.Pending  // for the archive; nil: not for it
}

// openOutputs opens them before the program starts: what is wrong with them is
// refused. Errors have the code for usage. What is open is for close, also after one.
func openOutputs(f flags, p *cli.Env) (*outputs, error) {
	o := &outputs{}
	if !f.quiet && !p.State.FDClosed(2) {
		o.stderr = p.Stderr
	}
	var err error
	if o.json, err = cli.OpenPlace("json", f.json); err != nil {
		return o, err
	}
	if o.crate, err = openCrate(f.recorded.crate); err != nil {
		return o, err
	}
	o.series, err = cli.OpenStream("series", f.series)
	return o, err
}

// begin makes ready for what is written while the command runs, which has begun.
func (o *outputs) begin() error {
	if o.series == nil {
		return nil
	}
	return outfile.Empty(o.series)
}

// finish completes the account, and ends what is shown while the command runs.
func (o *outputs) finish(ctx context.Context, a *account.Account) {
	if o.watch != nil {
		o.watch.end(hurry)
	}
	if o.record != nil {
		a.Provenance = o.record.End(ctx, a.Files)
	}
}

// write puts the account where it was asked for.
func (o *outputs) write(a *account.Account) {
	if o.crate != nil {
		if err := writeCrate(o.crate, a); err != nil {
			o.say("write the crate: %v", err)
		}
	}
	if err := o.json.Write(func(to io.Writer) error { return writeJSON(to, a) }); err != nil {
		o.say("write the account: %v", err)
	}
	if o.stderr != nil {
		_, _ = io.WriteString(o.stderr, page(a)) // nobody else to tell
	}
}

// say says something to a person, unless nothing is to be said.
func (o *outputs) say(format string, args ...any) {
	if o.stderr != nil {
		_, _ = fmt.Fprintf(o.stderr, "attune: "+format+"\n", args...) // nobody else to tell
	}
}

func (o *outputs) close() {
	if o.crate != nil {
		_ = o.crate.Close() // its files are closed
	}
	if o.series != nil {
		_ = o.series.Close() // each line was written with one call, whose error was seen
	}
	_ = o.json.Close() // likewise
}

// writeJSON writes the document with one call, so that it is not cut up among
// what others write there.
func writeJSON(to io.Writer, a *account.Account) error {
	text, err := encode(a)
	if err != nil {
		return err
	}
	_, err = to.Write(text)
	return err
}

func encode(a *account.Account) ([]byte, error) {
	text, err := json.MarshalIndent(a, "", "  ")
	return append(text, '\n'), err
}

// page is the account for a person: a handful of lines.
func page(a *account.Account) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, "attune: "+format+"\n", args...) }
	line("%s after %s", endText(a.Exit), quantity.Seconds(a.WallSeconds))
	exceeded := a.Exit.SoftLimits
	if a.Exit.Type != account.ExitLimits { // it had ended by itself when that was seen
		exceeded = slices.Concat(a.Exit.Limits, exceeded)
	}
	if len(exceeded) > 0 {
		line("exceeded   %s", strings.Join(exceeded, ", "))
	}
	if a.CPUSeconds != nil {
		line("CPU        %s%s (%s%s of it in the kernel), %.2f cores on average%s", digest.About(a, "cpu_seconds"), quantity.Seconds(*a.CPUSeconds),
			digest.About(a, "system_seconds"), quantity.Seconds(*a.SystemSeconds), *a.CoresAverage, numberText(a.CoresPeak, ", %.2f at most"))
	}
	if a.Processes.Total != nil {
		text := fmt.Sprintf("%s%d, at most %d at one time", digest.About(a, "processes.total"), *a.Processes.Total, *a.Processes.Peak)
		if left := a.Processes.Left; left != nil && *left > 0 {
			text += fmt.Sprintf("; %d live on", *left)
		}
		line("processes  %s", text)
	}
	memoryLine(a, line)
	if io := a.IO; io.Read != nil {
		line("read       %s%s by %d calls, %s from storage", digest.About(a, "io.read_bytes"), quantity.Bytes(float64(*io.Read)), *io.ReadCalls, quantity.Bytes(float64(*io.StorageRead)))
		line("written    %s%s by %d calls, %s to storage", digest.About(a, "io.written_bytes"), quantity.Bytes(float64(*io.Written)), *io.WrittenCalls, quantity.Bytes(float64(*io.StorageWritten)))
	}
	diskLine(a, line)
	fileLines(a, line)
	provenanceLines(a, line)
	return out.String()
}

// memoryLine says how much memory there was at most, in all ways that are known.
func memoryLine(a *account.Account, line func(string, ...any)) {
	var memory []string
	for _, m := range []struct {
		field, text string
		bytes       *uint64
	}{
		{"memory.resident_peak_bytes", "resident", a.Memory.Resident},
		{"memory.proportional_peak_bytes", "with shared pages once", a.Memory.Proportional},
		{"memory.cgroup_peak_bytes", "with file cache", a.Memory.Cgroup},
	} {
		if m.bytes != nil {
			memory = append(memory, digest.About(a, m.field)+quantity.Bytes(float64(*m.bytes))+" "+m.text)
		}
	}
	if memory != nil {
		line("memory     at most %s", strings.Join(memory, ", "))
	}
}

// diskLine says how much lay in the directories that were measured, or why that is not known.
func diskLine(a *account.Account, line func(string, ...any)) {
	const bytes = "disk.bytes_peak"
	where := strings.Join(a.Disk.Directories, ", ")
	if a.Disk.Bytes != nil {
		line("disk       at most %s%s in %d files, in %s", digest.About(a, bytes), quantity.Bytes(float64(*a.Disk.Bytes)), *a.Disk.Files, where)
	}
	if why := a.Missing[bytes]; why != "" && where != "" {
		line("disk       not all is known: %s", why)
	}
}

// provenanceLines tell of files that were not as expected.
func provenanceLines(a *account.Account, line func(string, ...any)) {
	if a.Provenance == nil {
		return
	}
	for _, f := range a.Provenance.Inputs {
		if f.Changed {
			line("input      %s was changed while the command ran", f.Path)
		}
	}
	for _, f := range a.Provenance.Outputs {
		if f.Missing != "" {
			line("output     %s", f.Missing)
		}
	}
}

// fileLines says what was done with files and the network, if that was asked for.
func fileLines(a *account.Account, line func(string, ...any)) {
	bytes := func(n *uint64) string { return quantity.Bytes(float64(*n)) }
	if io := a.IO; io.NetworkReceived != nil {
		line("network    %s%s received, %s sent", digest.About(a, "io.network_received_bytes"), bytes(io.NetworkReceived), bytes(io.NetworkSent))
	}
	if a.Files == nil {
		if why := a.Missing["files"]; why != "" {
			line("files      not accounted for: %s", why)
		}
		return
	}
	shown := a.Files[:min(len(a.Files), shownFiles)]
	if len(shown) == 0 || shown[0].Access != "" {
		line("files      %s%d were seen open; bytes and calls need root", digest.About(a, "files"), len(a.Files))
		for _, f := range shown {
			if f.WasWritten() {
				line("           %s: open for %s", printable.Line(f.Path), f.Access)
			}
		}
		return
	}
	line("files      %s%d were used; those with the most bytes:", digest.About(a, "files"), len(a.Files))
	for _, f := range shown {
		if *f.Read+*f.Written > 0 {
			line("           %s: read %s, written %s", printable.Line(f.Path), bytes(f.Read), bytes(f.Written))
		}
	}
}

// shownFiles is how many files a page names.
const shownFiles = 5

func endText(e account.Exit) string {
	switch {
	case e.Type == account.ExitLimits:
		return "ended because of " + strings.Join(e.Limits, ", ")
	case e.Signal != "":
		return "killed by " + e.Signal
	case e.Code != nil && *e.Code != 0:
		return fmt.Sprintf("ended with exit code %d", *e.Code)
	}
	return "ended"
}

func numberText(n *float64, format string) string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf(format, *n)
}
