// SPDX-License-Identifier: Apache-2.0

package procevent

//go:generate go tool -modfile=../../../tools/go.mod bpf2go -cc clang-14 -strip llvm-strip-14 -target bpfel -type process_event -type process_event_kind -type exec_event -type exit_event -type name_key -type member_share processEvents ../src/process_events.bpf.c -- -mcpu=v3 -Wall -Wextra -Werror -I../include
