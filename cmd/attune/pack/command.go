// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/runflags"
	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
	"github.com/attune-hpc/attune/cmd/attune/internal/tuner"
	"github.com/attune-hpc/attune/internal/config"
	"github.com/attune-hpc/attune/internal/exitcode"
)

const packLong = `Pack makes one file of a program and what tunes it. That file is started in
place of the program, by a shell, mpirun or a batch system, on nodes that need
neither attune nor a library of it: arguments, environment, input, output,
signals and exit status are the program's.

The first process of a job on a node starts one controller for all of them, as
attune run has it; it ends with them. The one file it leaves is what was learnt,
knowledge.db in ~/.local/state/attune (root's: /var/lib/attune), as after attune run.
Its report goes to the standard error of that process. The program does not wait for it: the
controller comes up beside it and takes over what is there by then. Where nothing
can be instrumented the program simply runs, and with ATTUNE=off in the
environment too; so it does as the first process of a container, of which the
controller would become a child: give the container an init (docker run --init).

The packed file is about 24 MB larger than the program: pack says how much, and
attune unpack --list where it goes. Every byte of it is checked at the start of the
first process, and the program is copied into memory: 6 ms, and 0.8 ms for each MB
of the program. The other processes of the job on that node start 2 ms later than
without Attune.

The program must be an ELF file. It runs from memory; one that looks for files
beside itself ($ORIGIN, /proc/self/exe) runs from an unnamed file in the folder
of the packed one, which --place can override. A file that was damaged or cut
off is refused before anything runs.

--config FILE and the flags below are packed; they have the form and meaning
that they have for attune run. On the node, its own settings in /etc/attune come
first, then the packed ones, then ATTUNE_... of the environment. In the names of
--report, --html, --timeline, --record and --log-file, %h is the node and %j a
name that all processes of one execution have there (16 digits; not the batch system's).

--objective is measured on each node, for the processes there: their output as far as it
goes to files, a file or a point of theirs, or a command that runs beside them as
you.`

const packExample = `  attune pack ./solver -o solver.tuned
  attune pack ./solver -o solver.tuned --tunlet mpi-progress --report r-%h-%j.json
  attune pack ./solver -o solver.tuned --objective output:^step
  mpirun -np 64 ./solver.tuned input.dat
  attune unpack --list solver.tuned`

// packOptions are what `attune pack` is asked for.
type packOptions struct {
	program, output string
	config          string
	place           string
	settings        []byte // packed, as a configuration file
	run             config.Run
}

// The places that a program is unpacked to.
const (
	placeAuto   = "auto"
	placeMemory = "memory"
	placeBeside = "beside"
)

func places() []string { return []string{placeAuto, placeMemory, placeBeside} }

// Command returns `attune pack`.
func Command(p *cli.Env) *cobra.Command {
	o := packOptions{}
	cmd := &cobra.Command{
		Use:               "pack [flags] PROGRAM -o FILE",
		Short:             "Make one file of a program and what tunes it",
		Long:              packLong,
		Example:           packExample,
		ValidArgsFunction: cli.CompleteCommand,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) != 1 || o.output == "" {
				return exitcode.UsageError(errors.New("one program and an output file are needed"), "write: attune pack PROGRAM -o FILE")
			}
			o.program = args[0]
			if err := o.settle(cmd); err != nil {
				return err
			}
			return packProgram(cmd.Context(), p, o)
		},
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "the `FILE` to make")
	cmd.Flags().StringVar(&o.config, "config", "", "pack the settings of `FILE`, in the form of attune.yaml")
	cmd.Flags().StringVar(&o.place, "place", placeAuto, "where the program is unpacked when it is started: auto, memory or beside")
	runflags.Add(cmd)
	mustHide(cmd, settings.KeyWatch) // no terminal of its own
	cli.MustComplete(cmd, "place", places)
	return cmd
}

// mustHide hides a flag that makes no sense here; it exists.
func mustHide(cmd *cobra.Command, flag string) {
	if err := cmd.Flags().MarkHidden(flag); err != nil {
		panic(err)
	}
}

// settle checks the settings and puts those that were given into one file.
func (o *packOptions) settle(cmd *cobra.Command) error {
	if !slices.Contains(places(), o.place) {
		return exitcode.UsageError(fmt.Errorf("unknown place %q", o.place), "use one of "+strings.Join(places(), ", "))
	}
	text, err := settings.PackedSettings(cmd.Flags(), o.config)
	if err != nil {
		return err
	}
	o.settings = text
	o.run, err = settings.LoadPacked(nil, text) // without the node's own
	if err != nil {
		return err
	}
	if o.run.Watch {
		return exitcode.UsageError(errors.New("a packed program has no terminal of its own for --watch"), "use --timeline and follow the file")
	}
	return tuner.CheckTunlets(cmd.Context(), o.run)
}
