// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
	"github.com/attune-hpc/attune/cmd/attune/internal/tuner"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/config"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/packfile"
	"github.com/attune-hpc/attune/internal/passing"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/rundir"
)

// Descriptors that the start of a packed program (dmlib/glue/glue.h) opens.
const (
	packedFileFD    = 3
	packedJoinFD    = 4
	packedProgramFD = 5 // only has to stay open: processes start by it
	packedEarlyFD   = 6
)

// Packed is what a packed program starts beside itself, for nobody to call.
func Packed(p *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "packed FOLDER JOB CMD [ARGS]", Short: "Control the processes of a packed program", Hidden: true,
		Args: cli.Arguments(3, cli.Any),
		RunE: func(cmd *cobra.Command, args []string) error {
			return controlPacked(cmd.Context(), p, rundir.Job{Path: args[0]}, args[1], args[2:])
		},
	}
	cmd.Flags().SetInterspersed(false) // what follows CMD is CMD's
	return cmd
}

// controlPacked follows and tunes the processes of a packed job until all have
// ended. The job's folder stays as long as they do, whatever goes wrong here:
// their environment leads there.
func controlPacked(ctx context.Context, p *cli.Env, job rundir.Job, id string, args []string) error {
	cli.OutlivePipes() // standard error is the program's
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	for _, fd := range []int{packedFileFD, packedJoinFD, packedProgramFD, packedEarlyFD} {
		syscall.CloseOnExec(fd) // tunlets are not to have them
	}
	members, err := newMembers(os.NewFile(packedJoinFD, "join"), job)
	if err != nil {
		return err
	}
	defer members.close()
	rundir.RemoveDeadJobs(rundir.Current(), job)
	err = unpackAndTune(ctx, p, members, id, args)
	if err != nil {
		_ = members.serve(ctx, func(*procid.Process) {}) // the first error is the one to be told
	}
	return err
}

// unpackAndTune unpacks into the session's own directory: the job's is gone as
// soon as its processes are, which may be while a tunlet starts.
func unpackAndTune(ctx context.Context, p *cli.Env, members *members, id string, args []string) error {
	job := members.job
	file := os.NewFile(packedFileFD, "packed program")
	defer func() { _ = file.Close() }() // read only
	packed, err := ReadPacked(file)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	dir, err := job.NewDir()
	if err != nil {
		return err
	}
	o := tuner.Options{Args: args, Dir: dir, Place: tuner.Place{
		ID: id, Gate: job.Socket("gate"), Early: os.NewFile(packedEarlyFD, "early"), Libraries: job.Path,
	}}
	var s *tuner.Tuner
	if o.Settings, err = unpackSettings(packed); err == nil {
		expandNames(&o.Settings, job)
		s, err = openPacked(ctx, p, o, packed)
	}
	if err != nil {
		return errors.Join(err, dir.Remove())
	}
	defer s.Close()
	return tunePacked(ctx, s, packed, info, members)
}

// openPacked opens the session of a packed job, which goes on when ctx has ended.
func openPacked(ctx context.Context, p *cli.Env, o tuner.Options, packed *packfile.File) (*tuner.Tuner, error) {
	useTunlets(&o.Settings, packed, tunletsIn(o.Dir))
	var forgotten error
	o.Descriptions, forgotten = RememberPacked(packed, o.Dir.Path)
	var trouble error
	o.Objective, trouble = tuner.OpenObjectiveOnNode(o.Settings.Objective)
	s, err := tuner.Open(context.WithoutCancel(ctx), p, o)
	if err == nil && trouble != nil {
		s.Log.Warn("your objective is not measured, and nothing is kept", "reason", trouble)
	}
	if err == nil && forgotten != nil {
		s.Log.Debug("the packed tunlets are asked what they are", "error", forgotten)
	}
	return s, err
}

// tunletsIn is where the tunlets of a packed job are unpacked.
func tunletsIn(dir *rundir.Dir) string { return filepath.Join(dir.Path, "tunlets") }

// tunePacked is `attune attach` to processes that come by themselves, and wait for
// nothing: by the time the gate is open, they have left their memory at
// packedEarlyFD. The session's outputs are open.
func tunePacked(ctx context.Context, s *tuner.Tuner, packed *packfile.File, file fs.FileInfo, members *members) error {
	if err := s.Connect(); err != nil {
		s.Abandon()
		return err
	}
	s.Begun.Go(func() {
		if err := unpackTunlets(packed, tunletsIn(s.Dir)); err != nil {
			s.Log.Warn("not every tunlet was unpacked", "error", err)
		}
		s.StartAnalyzer()
	})
	s.FollowSwitch(s.GiveBack)
	members.log = s.Log
	err := members.serve(ctx, func(process *procid.Process) {
		if !becomesProgram(ctx, process, file) {
			return
		}
		err := s.Joined.Controller.Follow(process.PID())
		for passing.Error(err) && process.Alive() && beat.Pause(ctx, acceptPause) {
			err = s.Joined.Controller.Follow(process.PID())
		}
		if err != nil {
			s.Log.Debug("follow a process", "pid", process.PID(), "error", err) // it may have ended
		}
	})
	if err != nil {
		s.Log.Warn("not every process was followed", "error", err)
	}
	exit := members.exit(s.Args[0]) // waits for processes, where not every one was followed
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), tuner.EndTimeout)
	defer cancel()
	s.Out.Write(s.Account(end, exit, nil), s.Notes.Lines())
	return nil
}

// becomesProgram waits until a process executes something else than the packed
// file: the start of a packed program is not to be watched. False if it ends
// before, or ctx does.
func becomesProgram(ctx context.Context, process *procid.Process, packed fs.FileInfo) bool {
	for process.Alive() {
		now, err := os.Stat(fmt.Sprintf("/proc/%d/exe", process.PID()))
		if err == nil && !os.SameFile(now, packed) {
			return process.Alive() // it was that of no other process
		}
		if !beat.Pause(ctx, time.Millisecond) {
			return false
		}
	}
	return false
}

// unpackSettings returns the settings of a packed job: the node's own settings
// first, then what was packed, then the environment.
func unpackSettings(packed *packfile.File) (config.Run, error) {
	var text bytes.Buffer
	if part, ok := packed.Find(packfile.Config); ok {
		if err := packed.Extract(&text, part); err != nil {
			return config.Run{}, err
		}
	}
	cfg, err := settings.LoadPacked(settings.Files(os.Getenv), text.Bytes())
	cfg.Watch = false // there is no terminal of its own
	return cfg, err
}

// expandNames replaces %h by the node and %j by the job in the names of files:
// each node writes its own.
func expandNames(cfg *config.Run, job rundir.Job) {
	host, err := os.Hostname()
	if err != nil {
		host = "local"
	}
	names := strings.NewReplacer("%h", host, "%j", strings.TrimPrefix(filepath.Base(job.Path), "job-"), "%%", "%")
	for _, file := range []*string{&cfg.Report, &cfg.HTML, &cfg.Timeline, &cfg.Record, &cfg.LogFile} {
		*file = names.Replace(*file)
	}
}

// ReadPacked reads the record of a packed program; errors say what to do.
func ReadPacked(file *os.File) (*packfile.File, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", file.Name())
	}
	packed, err := packfile.Read(file, info.Size())
	switch {
	case errors.Is(err, packfile.ErrNotPacked):
		return nil, &exitcode.Error{Code: exitcode.Failure, Err: fmt.Errorf("%s: %w", file.Name(), err), Remedy: "`attune pack` makes one"}
	case errors.Is(err, packfile.ErrDamaged):
		return nil, &exitcode.Error{Code: exitcode.Failure, Err: fmt.Errorf("%s: %w", file.Name(), err), Remedy: "copy it again, or pack it anew"}
	}
	return packed, err
}

// extractTo writes a part to a file that is not there yet.
func extractTo(packed *packfile.File, part packfile.Part, path string) error {
	if part.Kind == packfile.TunletLink {
		return linkTo(packed, part, path)
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, part.Mode|0o400)
	if err != nil {
		return err
	}
	if err := errors.Join(packed.Extract(out, part), out.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
