// SPDX-License-Identifier: Apache-2.0

package trap

//go:generate go tool -modfile=../../../tools/go.mod bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64 -type trap_hit traps ../src/traps.bpf.c -- -mcpu=v3 -Wall -Wextra -Werror -I../include
