// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/workload"
)

// connectionCases are those of the tunlets about TCP connections, both ends on
// this machine. Their ports are of no well-known service.
func connectionCases() []Case {
	return []Case{
		{
			Name: "nagle/C", Tunlet: "nagle", Unit: "requests/s", Format: measure.Native(),
			Sources: []Source{{Name: "tcp_requests"}},
			Command: []string{"{bin}/tcp_requests", "{seconds}"},
			Best:    Static{Command: []string{"{bin}/tcp_requests", "{seconds}", "nodelay"}},
		},
		{
			Name: "nagle/python3 -m http.server", Tunlet: "nagle", Debian: true, Unit: "requests/s",
			Format:  measure.Summary(`^Requests/sec:\s+(?P<rate>\S+)`),
			Needs:   []Need{{Command: workload.DebianPython, Package: "python3-minimal"}, {Command: "wrk", Package: "wrk"}},
			Command: shell(httpServer("-m http.server --protocol HTTP/1.1 --directory {src} --bind 127.0.0.1 18123")),
			Best:    Static{Command: shell(httpServer("{src}/http_nodelay.py 18123"))},
		},
		{
			Name: "sockbuf/C", Tunlet: "sockbuf", Unit: "MB/s", Format: measure.Native(),
			Sources: []Source{{Name: "tcp_stream"}},
			Command: []string{"{bin}/tcp_stream", "{seconds}", "16384"},
			Best:    Static{Command: []string{"{bin}/tcp_stream", "{seconds}", "0"}},
		},
		{
			Name: "sockbuf/socat", Tunlet: "sockbuf", Debian: true, Unit: "bytes/s",
			Format:  measure.Summary(`^(?P<count>\d+) bytes in (?P<seconds>\S+) s`),
			Needs:   []Need{{Command: "socat", Package: "socat"}},
			Command: shell(socat(",sndbuf=16384")),
			Best:    Static{Command: shell(socat(""))},
		},
		{
			Name: "congestion/iperf3", Tunlet: "congestion", Debian: true, Unit: "Mbit/s",
			Format:  measure.Summary(`(?P<rate>[0-9.]+) Mbits/sec +receiver`),
			Needs:   []Need{{Command: "iperf3", Package: "iperf3"}},
			Command: shell(iperf("bbr")),
			Best:    Static{Command: shell(iperf("cubic"))},
		},
	}
}

func shell(script string) []string { return []string{"sh", "-c", script} }

// httpServer serves files with a Python script, and asks for the same one over
// one connection.
func httpServer(script string) string {
	return workload.DebianPython + " " + script + ` >/dev/null 2>&1 & server=$!
for try in 1 2 3 4 5; do
	sleep 1
	wrk --threads 1 --connections 1 --duration {seconds} http://127.0.0.1:18123/http_nodelay.py && break
done
kill $server`
}

// socat sends zeros from one process to another, with options of its connection,
// for the given time since the other one has listened (port 18335, state 0A).
func socat(options string) string {
	return `echo "$(socat -u -b 65536 TCP-LISTEN:18335,bind=127.0.0.1,reuseaddr,accept-timeout=60 - | wc -c) bytes in {seconds} s" &
until grep -q ':479F 00000000:0000 0A' /proc/net/tcp; do sleep 0.02; done
timeout {seconds} socat -u -b 65536 /dev/zero TCP:127.0.0.1:18335` + options + `
wait`
}

// iperf measures one stream with a congestion control.
func iperf(congestion string) string {
	return `iperf3 --server --one-off --bind 127.0.0.1 --port 18334 >/dev/null &
for try in 1 2 3 4 5; do
	sleep 0.5
	iperf3 --client 127.0.0.1 --port 18334 --format m --congestion ` + congestion + ` --time {seconds} && break
done`
}
