// SPDX-License-Identifier: Apache-2.0

package tune

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// functionLong is what the commands that change functions have in common.
const functionLong = `

Every call is changed, also those inside the object that defines the function;
not those where the compiler has built it into its caller. A thread is stopped
for a moment the first time, to make room; the others run on. The change needs
nothing of attune in the process, and stays until attune undo.`

func parseFunction(text string) (*attunev1.Function, error) {
	symbol, err := parseSymbol(text)
	return &attunev1.Function{Object: symbol.object, Symbol: symbol.symbol}, err
}

func replaceAction() tuneAction {
	var load, force bool
	return tuneAction{
		use:   "replace [flags] PID... OBJECT:OLD=OBJECT:NEW",
		short: "Have another function run instead of one",
		long: `Replace makes calls of one function go to another one, which takes the same
parameters and returns the same type. That is checked where debug information
has both. Where the function's entry cannot be patched, calls through dynamic
linking alone are changed, and the answer says "partial".` + functionLong,
		example: `  attune tune replace 4711 solver:slow=libfast.so:fast
  attune tune replace --load 4711 ./solver:slow=./libfast.so:fast`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().BoolVar(&load, "load", false, "load the object of NEW first, which is given by its path")
			cmd.Flags().BoolVar(&force, "force", false, "replace it also if the parameters differ")
		},
		parse:    func(args []string) ([]Request, error) { return parseReplace(args, load, force) },
		complete: completeFunctions,
	}
}

func parseReplace(args []string, load, force bool) (requests []Request, err error) {
	if len(args) != 1 || !strings.Contains(args[0], "=") {
		return nil, errors.New("give one OBJECT:OLD=OBJECT:NEW")
	}
	from, to, _ := strings.Cut(args[0], "=")
	replace := &attunev1.ReplaceFunction{Force: force}
	if replace.Old, err = parseFunction(from); err != nil {
		return nil, err
	}
	if replace.New, err = parseFunction(to); err != nil {
		return nil, err
	}
	if load {
		path := replace.GetNew().GetObject()
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("--load: %q is no path of a file to load", path)
		}
		requests = append(requests, Request{
			Name:   "load " + filepath.Base(path),
			Action: &attunev1.Action{Kind: &attunev1.Action_Load{Load: &attunev1.LoadLibrary{Path: path, Symbol: replace.GetNew().GetSymbol()}}},
			first:  true,
		})
	}
	return append(requests, Request{
		Name: "replace " + from, Action: &attunev1.Action{Kind: &attunev1.Action_Replace{Replace: replace}},
	}), nil
}

func removeAction() tuneAction {
	var returns, caller string
	return tuneAction{
		use:   "remove [flags] PID... OBJECT:FUNCTION",
		short: "Have a function return at once",
		long: `Remove makes a function return at once, with the value of --returns, for all
calls or for those from one function.` + functionLong,
		example: `  attune tune remove 4711 solver:debug_check
  attune tune remove --returns 0 --called-from solver:main 4711 libc.so.6:fsync`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&returns, "returns", "", "`VALUE` that it returns; a number with a point is a double")
			cmd.Flags().StringVar(&caller, "called-from", "", "only if `OBJECT:FUNCTION` calls it")
		},
		parse: func(args []string) ([]Request, error) {
			if len(args) != 1 {
				return nil, errors.New("give one OBJECT:FUNCTION")
			}
			remove := &attunev1.RemoveCall{}
			var err error
			if remove.Function, err = parseFunction(args[0]); err != nil {
				return nil, err
			}
			if returns != "" {
				if remove.Returns, err = parseValue(returns); err != nil {
					return nil, fmt.Errorf("--returns: %w", err)
				}
			}
			if caller != "" {
				if remove.CalledFrom, err = parseFunction(caller); err != nil {
					return nil, fmt.Errorf("--called-from: %w", err)
				}
			}
			return []Request{{Name: "remove " + args[0], Action: &attunev1.Action{Kind: &attunev1.Action_Remove{Remove: remove}}}}, nil
		},
		complete: completeFunctions,
	}
}

func paramAction() tuneAction {
	var ifOld string
	return tuneAction{
		use:   "param [flags] PID... OBJECT:FUNCTION NUMBER=VALUE",
		short: "Give a function another value for a parameter",
		long: `Param gives a function another value for a parameter, whenever it is called, or
when it is passed the value of --if-old. Parameters are numbered from 0, as the
calling convention counts registers: integers and addresses on their own, and
floating-point numbers, which have a point, on their own. A structure that is passed
in registers takes up to two numbers, the address of a large result number 0.` + functionLong,
		example: `  attune tune param 4711 solver:read_block 1=64K --if-old 4096
  attune tune param 4711 solver:relax 0=1.5`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&ifOld, "if-old", "", "change it only where `VALUE` is passed")
		},
		parse:    func(args []string) ([]Request, error) { return parseParameter(args, ifOld) },
		complete: completeFunctions,
	}
}

func parseParameter(args []string, ifOld string) ([]Request, error) {
	if len(args) != 2 {
		return nil, errors.New("give OBJECT:FUNCTION NUMBER=VALUE")
	}
	number, text, _ := strings.Cut(args[1], "=")
	n, err := strconv.ParseUint(number, 10, 8)
	if err != nil || text == "" {
		return nil, fmt.Errorf("%q is no NUMBER=VALUE", args[1])
	}
	change := &attunev1.ChangeParameter{Parameter: uint32(n)}
	if change.Function, err = parseFunction(args[0]); err != nil {
		return nil, err
	}
	if change.Value, err = parseValue(text); err != nil {
		return nil, err
	}
	if ifOld != "" {
		if change.RequiredOld, err = parseValue(ifOld); err != nil {
			return nil, fmt.Errorf("--if-old: %w", err)
		}
	}
	return []Request{{
		Name: "param " + args[0], Action: &attunev1.Action{Kind: &attunev1.Action_Parameter{Parameter: change}},
	}}, nil
}

func insertAction() tuneAction {
	var atExit bool
	return tuneAction{
		use:   "insert [flags] PID... OBJECT:FUNCTION OBJECT:CALLED [--] [ARGUMENT...]",
		short: "Have a function call another one",
		long: `Insert makes a function call another one before it runs, or with --at-exit when
it returns. An argument is a value as for call; arg0 to arg5 stand for integer
and address parameters of the function, result for what it returns.

The thread may hold any lock when the call is made: what is called must need
none.` + functionLong,
		example: `  attune tune insert 4711 solver:step libtrace.so:step_begins arg0
  attune tune insert --at-exit 4711 solver:step libtrace.so:step_ends result`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().BoolVar(&atExit, "at-exit", false, "make the call when the function returns")
		},
		parse: func(args []string) (requests []Request, err error) {
			if len(args) < 2 {
				return nil, errors.New("give OBJECT:FUNCTION OBJECT:CALLED")
			}
			insert := &attunev1.InsertCall{Place: attunev1.Place_PLACE_ENTRY}
			if atExit {
				insert.Place = attunev1.Place_PLACE_EXIT
			}
			if insert.Function, err = parseFunction(args[0]); err != nil {
				return nil, err
			}
			if insert.Call, err = parseFunction(args[1]); err != nil {
				return nil, err
			}
			for _, arg := range args[2:] {
				insert.Arguments = append(insert.Arguments, parseCaptured(arg))
			}
			return []Request{{Name: "insert " + args[0], Action: &attunev1.Action{Kind: &attunev1.Action_Insert{Insert: insert}}}}, nil
		},
		complete: completeFunctions,
	}
}

// parseCaptured reads an argument of an inserted call.
func parseCaptured(text string) *attunev1.Argument {
	if text == "result" {
		return &attunev1.Argument{Kind: &attunev1.Argument_Result{Result: true}}
	}
	if number, found := strings.CutPrefix(text, "arg"); found {
		if n, err := strconv.ParseUint(number, 10, 8); err == nil && n < 6 {
			return &attunev1.Argument{Kind: &attunev1.Argument_Parameter{Parameter: uint32(n)}}
		}
	}
	return &attunev1.Argument{Kind: &attunev1.Argument_Constant{Constant: parseArgument(text)}}
}
