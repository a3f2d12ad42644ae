// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/attune-hpc/attune/internal/confine"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/procid"
)

// memoryGoal is where the collector of a helper tries hard, and memoryLimit where the
// helper ends: some times what any operation needs.
const (
	memoryGoal  = 128 << 20
	memoryLimit = 512 << 20
)

// cpuLimit is the CPU time at which the kernel ends a helper. A helper has one processor, so
// that no operation takes more CPU time than it may take time; the pool asks nothing more
// of one that has taken DefaultSlowPatience, and its last operation may take as much.
const cpuLimit = 2 * DefaultSlowPatience

// Name is how ps shows the process that Serve runs in.
const Name = "attune-reader"

// ServeIfAsked does operations, as Serve does, on standard input and output, and ends this
// process then, if a Pool has started it: programs that have one begin with it.
func ServeIfAsked(operations ...Served) {
	if len(os.Args) != 2 || os.Args[1] != Argument {
		return
	}
	if err := Serve(os.Stdin, os.Stdout, operations...); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", Name, err)
		os.Exit(exitcode.Failure)
	}
	os.Exit(exitcode.OK)
}

// Serve does operations, one after the other, that the Pool of the process that has
// started this one asks for, until in ends. It bounds what this process takes, and what
// it may ask of the kernel, for good.
func Serve(in io.Reader, out io.Writer, operations ...Served) error {
	procid.SetName(Name)
	err := confine.Bound(confine.Limits{MemoryGoal: memoryGoal, Memory: memoryLimit, CPU: cpuLimit})
	if err == nil {
		err = filter(os.Getpid()).Install()
	}
	if err != nil {
		var asked request // else this process might have ended before it is asked
		return errors.Join(err, receive(in, &asked), send(out, reply{Error: err.Error(), Unfit: true}))
	}
	known := make(map[string]Served, len(operations))
	for _, o := range operations {
		known[o.operation()] = o
	}
	for {
		var asked request
		if err := receive(in, &asked); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("receive a question: %w", err)
		}
		answer, err := json.RawMessage(nil), error(nil)
		if o, ok := known[asked.Operation]; ok {
			answer, err = o.serve(context.Background(), asked.Question)
		} else {
			err = fmt.Errorf("operation %q is unknown", asked.Operation)
		}
		if err := send(out, replyOf(answer, err)); err != nil {
			return fmt.Errorf("send an answer: %w", err)
		}
	}
}
