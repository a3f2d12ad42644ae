// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/attune-hpc/attune/cmd/attune/internal/archived"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/controller/accountant"
	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/launch"
)

const long = `Account starts CMD unchanged and says at its end what CMD and all processes that it
started took: CPU time, memory, bytes, calls, processes. Input, output, terminal,
signals, exit code and death by signal pass through as with attune run, and
nothing is tuned.

With root, the kernel adds up what each thread took when it is done with the
thread: nothing is too short to be seen, and nothing is counted twice. Each number
in the JSON document says whether it is exact, sampled, or a bound, and what
measured it; docs/reference/account.md describes all of them. What could not be
measured is absent, with its reason.

Processes that outlive CMD are in the account with what they took until CMD ended,
unless --wait is given.

--files adds what was done with each file, and what went over the network: bytes and calls,
opens, executions, maps into memory. Each system call of the machine then takes about a
tenth of a microsecond longer, until CMD has ended. Without root it only has the names of
the files that were seen open now and then, and whether they were for reading or writing.

--measure-dir DIR says how many files were in DIR at most, and how much of the disk they
took: it is walked through again and again, in at most a twentieth of the time. A limit of
disk or total_files has the working directory measured if no DIR is named.

--limit names a field of the account, or one of the short names wall, cpu, cores,
processes, memory, anonymous, virtual, cgroup, disk, total_files, read and written, and the most that
CMD and its processes may take: wall=10m, memory=2GB, processes=100. When it is
exceeded, all of them get SIGTERM, and after --grace SIGKILL until none is left, and
attune ends with exit code 124. --soft-limit only says so.

--provenance, and the flags that imply it, record where the results came from, as
well: what ran with which files, environment and machine. Values of environment
variables that may be secrets are left out; docs/reference/account.md has the rules.
Files are read when CMD has ended, and standard streams are captured where they are files:
CMD sees nothing of it. An archive in a file keeps all of it; one on a server, which others
read, gets neither environment nor streams. --crate makes a directory an RO-Crate, with the
account in it.`

const example = `  attune account -- ./my-program input.dat
  attune account --json account.json -- make -j8
  attune account --limit memory=2GB --limit wall=10m -- ./my-program
  attune account --files --json account.json -- make
  attune account --series series.csv --every 10ms --watch -- ./my-program
  attune account --crate . --input reads.fa --output out.bam -- ./align reads.fa out.bam
  attune account --archive -- ./my-program input.dat && attune archive estimate my-program`

// flags are those of `attune account`.
type flags struct {
	json, series string
	quiet, watch bool
	snapshots    []string
	recorded     recorded
	archive      bool
	archiveAt    string // as archived.Find says
	name         string
	limits, soft []string
	options      accountant.Options
}

// Command returns `attune account`.
func Command(p *cli.Env) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:               "account [flags] -- CMD [ARGS]",
		Short:             "Run a program and say what it took",
		Long:              long,
		Example:           example,
		Args:              cli.SomeCommand("account"),
		ValidArgsFunction: cli.CompleteCommand,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if f.archiveAt, err = f.findArchive(cmd.Flags()); err != nil {
				return err
			}
			return run(cmd.Context(), p, f, args)
		},
	}
	cmd.Flags().SetInterspersed(false) // what follows CMD is CMD's
	cmd.Flags().StringVar(&f.json, "json", "", "write the account as JSON to this file at the end; - is standard output")
	cmd.Flags().StringVar(&f.series, "series", "", "write a line of JSON to this file every --every, as it happens; comma-separated values if its name ends in .csv")
	cmd.Flags().DurationVar(&f.options.Every, "every", 50*time.Millisecond, "time between two looks at the processes, at least 10ms")
	cmd.Flags().StringArrayVar(&f.limits, "limit", nil, "`FIELD=VALUE`: end all processes when they take more; may be repeated")
	cmd.Flags().StringArrayVar(&f.soft, "soft-limit", nil, "`FIELD=VALUE`: say so when they take more; may be repeated")
	cmd.Flags().DurationVar(&f.options.Grace, "grace", 2*time.Second, "time between SIGTERM and SIGKILL when a limit is exceeded")
	cmd.Flags().BoolVar(&f.options.Files, "files", false, "account for each file and for the network as well; without root only by name")
	cmd.Flags().StringArrayVar(&f.options.Directories, "measure-dir", nil, "`DIR` whose footprint is measured while CMD runs: files and bytes at most; may be repeated")
	cmd.Flags().BoolVar(&f.options.Wait, "wait", false, "account until the last of the processes has ended")
	cmd.Flags().BoolVar(&f.options.NoGroup, "no-cgroup", false, "leave CMD in the control group of attune")
	cmd.Flags().BoolVar(&f.options.WithoutKernel, "without-root", false, "make the account as without root")
	cmd.Flags().BoolVar(&f.archive, "archive", false, "add the account to the archive: attune archive says what the next one needs")
	archived.AddFlag(cmd.Flags())
	cmd.Flags().StringVar(&f.name, "name", "", "`NAME` of the category in the archive; implies --archive")
	cmd.Flags().BoolVar(&f.watch, "watch", false, "show what there is while CMD runs, on standard error: one line that is rewritten, where CMD does not write to the terminal, else a line every 10 s")
	cmd.Flags().StringArrayVar(&f.snapshots, "snapshot-on", nil, "`FILE` that appears, or FILE:REGEXP for each line written to it that matches: keep what there is then; may be repeated")
	cmd.Flags().BoolVar(&f.recorded.on, "provenance", false, "record the executable's checksum, environment without secrets, user, machine, job ids and limits too")
	cmd.Flags().StringArrayVar(&f.recorded.inputs, "input", nil, "`FILE` that CMD reads: record its checksum; may be repeated, implies --provenance")
	cmd.Flags().StringArrayVar(&f.recorded.outputs, "output", nil, "`FILE` that CMD writes: record its checksum; may be repeated, implies --provenance")
	cmd.Flags().StringVar(&f.recorded.capture, "capture", "", "record the last `SIZE` of standard output and error where they are files; implies --provenance")
	cmd.Flags().StringVar(&f.recorded.crate, "crate", "", "make `DIR` an RO-Crate (Process Run Crate 0.5) of this run; implies --provenance")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "say nothing on standard error")
	return cmd
}

// exitLimits is the exit code when the program was ended because of a limit: that
// of timeout(1).
const exitLimits = 124

// run makes ready, and runs the program from start to account. p.Program says how it ended. An error
// means that the program did not run, or was ended because of a limit.
func run(ctx context.Context, p *cli.Env, f flags, args []string) error {
	if err := f.readOptions(); err != nil {
		return err
	}
	out, err := openOutputs(f, p)
	defer out.close()
	if err != nil {
		return err
	}
	if out.series != nil {
		f.options.Series, f.options.SeriesPath, f.options.SeriesCSV = out.series, f.series, strings.HasSuffix(f.series, ".csv")
	}
	if out.record, err = f.recorded.begin(p); err != nil {
		return err
	}
	if f.watch && out.stderr != nil {
		// Where CMD writes to the terminal, it would write into the line.
		out.watch = newWatch(out.stderr, term.IsTerminal(unix.Stderr) && !term.IsTerminal(unix.Stdout))
		f.options.Watch = out.watch.put
	}
	a, err := accountant.New(f.options)
	if errors.Is(err, accountant.ErrNotLimitable) {
		return exitcode.UsageError(fmt.Errorf("--limit: %w", err), "nothing was started")
	}
	if errors.Is(err, accountant.ErrDirectory) {
		return exitcode.UsageError(err, "name others by --measure-dir; nothing was started")
	}
	if err != nil {
		return err
	}
	defer func() { _ = a.Close() }() // nobody can do anything about it
	if f.archive {
		out.task = archived.Begin(args, f.name, f.archiveAt)
	}
	return follow(ctx, p, a, out, args)
}

// follow runs the program, and makes and writes its account.
func follow(ctx context.Context, p *cli.Env, a *accountant.Accountant, out *outputs, args []string) error {
	signals := launch.Catch(p.State)
	command := launch.Command{Args: args, Env: cli.Environment(), Signals: signals}
	a.Prepare(&command)
	child, err := launch.Start(ctx, command)
	if err != nil {
		return err
	}
	if err := out.begin(); err != nil {
		out.say("the time series may be mixed with what was there before: %v", err)
	}
	a.Begin(child)
	if out.record != nil {
		out.record.Started(child.PID(), child.Path)
	}
	if err := launch.LetGo(p.Descriptors, out.stderr != nil); err != nil {
		out.say("standard streams stay open here until the end: %v", err)
	}
	exit := child.Wait()
	signals.AllowStop()
	record := end(ctx, a, out, signals, args, exit)
	if record != nil && record.Exit.Type == account.ExitLimits {
		return &exitcode.Error{Code: exitLimits, Err: fmt.Errorf("all processes were ended, for a limit was exceeded: %s", strings.Join(record.Exit.Limits, ", "))}
	}
	p.Program = &exit
	return nil
}

// hurry is how long the account may take after a second terminating signal.
const hurry = 2 * time.Second

// end makes the account and writes it. A second terminating signal ends the wait for
// processes that live on, and then for whoever does not read what is written: the
// account is nil.
func end(ctx context.Context, a *accountant.Accountant, out *outputs, signals *launch.Signals, args []string, exit launch.Exit) *account.Account {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan *account.Account, 1)
	go func() {
		record := a.End(ctx, args, exit)
		out.finish(ctx, record)
		out.write(record)
		out.keep(ctx, record)
		done <- record
	}()
	select {
	case record := <-done:
		return record
	case <-signals.Second(ctx.Done()):
	}
	stop()
	select {
	case record := <-done:
		return record
	case <-time.After(hurry):
		return nil
	}
}

// readOptions reads limits and events of the command line.
func (f *flags) readOptions() error {
	for _, list := range []struct {
		flag  string
		texts []string
	}{{"limit", f.limits}, {"soft-limit", f.soft}} {
		for _, text := range list.texts {
			limit, err := accountant.ParseLimit(text)
			if err != nil {
				return exitcode.UsageError(fmt.Errorf("--%s: %w", list.flag, err), "see `attune account --help`")
			}
			limit.Soft = list.flag == "soft-limit"
			f.options.Limits = append(f.options.Limits, limit)
		}
	}
	for _, text := range f.snapshots {
		event, err := accountant.ParseEvent(text)
		if err != nil {
			return exitcode.UsageError(fmt.Errorf("--snapshot-on: %w", err), "see `attune account --help`")
		}
		f.options.Snapshots = append(f.options.Snapshots, event)
	}
	if f.options.Every < accountant.MinEvery {
		return exitcode.UsageError(fmt.Errorf("--every: %v is less than %v", f.options.Every, accountant.MinEvery), "see `attune account --help`")
	}
	return nil
}
