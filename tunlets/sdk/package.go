// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// The metadata entries of calls to an instance; TunletPackageService explains them.
const (
	// InstanceKey names the instance that a call is meant for.
	InstanceKey = "attune-instance"
	// CPUKey is, in a trailer, the CPU time that the call took, nanoseconds.
	CPUKey = "attune-cpu-nanos"
	// EndedKey is, in a trailer, why the instance has ended.
	EndedKey = "attune-ended"
)

// endGrace is how long a call that runs may take to return when its instance is ended,
// before it counts as one that does not.
const endGrace = time.Second

// packageServer holds the tunlets of a package and their instances.
type packageServer struct {
	attunev1.UnimplementedTunletPackageServiceServer

	tunlets map[string]func() Tunlet
	crashed func(tunlet, report string)
	resized func(instances int) // told how many instances there are; holds mu
	memory  *reclaimer

	mu        sync.Mutex // guards what follows; a leaf lock
	instances map[uint64]*instance
	last      uint64
}

// instance is one use of a tunlet.
type instance struct {
	service *server
	ended   atomic.Pointer[string] // why; nil: it lives
}

// newPackageServer returns a server of tunlets by their names. crashed is told of
// each panic, and resized of each change of the number of instances; both must not
// wait.
func newPackageServer(tunlets map[string]func() Tunlet, crashed func(tunlet, report string), resized func(int)) *packageServer {
	return &packageServer{
		tunlets: tunlets, crashed: crashed, resized: resized, memory: newReclaimer(), instances: map[uint64]*instance{},
	}
}

// register adds both services to a server.
func (p *packageServer) register(s *grpc.Server) {
	attunev1.RegisterTunletPackageServiceServer(s, p)
	desc := attunev1.TunletService_ServiceDesc
	desc.HandlerType = (*any)(nil) // calls are passed on to instances
	desc.Methods = make([]grpc.MethodDesc, 0, len(attunev1.TunletService_ServiceDesc.Methods))
	for _, m := range attunev1.TunletService_ServiceDesc.Methods {
		desc.Methods = append(desc.Methods, grpc.MethodDesc{MethodName: m.MethodName, Handler: p.passOn(m)})
	}
	s.RegisterService(&desc, p)
}

// passOn makes calls of a method to the instances that they are meant for.
func (p *packageServer) passOn(m grpc.MethodDesc) grpc.MethodHandler {
	return func(_ any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		i, err := p.meant(ctx)
		if err != nil {
			return nil, err
		}
		p.memory.called()
		cpu := startCPUClock()
		reply, err := m.Handler(i.service, ctx, decode, interceptor)
		trailer := metadata.Pairs(CPUKey, strconv.FormatInt(int64(cpu.stop()), 10))
		if reason := i.ended.Load(); reason != nil {
			trailer.Set(EndedKey, *reason)
		}
		_ = grpc.SetTrailer(ctx, trailer) // fails for calls that have ended
		return reply, err
	}
}

// meant returns the instance that a call is meant for.
func (p *packageServer) meant(ctx context.Context) (*instance, error) {
	entries := metadata.ValueFromIncomingContext(ctx, InstanceKey)
	if len(entries) != 1 {
		return nil, status.Errorf(codes.InvalidArgument, "a call to a package of tunlets has %d entries %s, not one", len(entries), InstanceKey)
	}
	number, err := strconv.ParseUint(entries[0], 10, 64)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "%s: %v", InstanceKey, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := p.instances[number]; i != nil {
		return i, nil
	}
	return nil, status.Errorf(codes.NotFound, "there is no instance %d", number)
}

// BeginTunlet makes an instance; the tunlet itself is made in its first call. It makes none
// for a caller who has stopped waiting, and who would never end it.
func (p *packageServer) BeginTunlet(ctx context.Context, r *attunev1.BeginTunletRequest) (*attunev1.BeginTunletResponse, error) {
	newTunlet := p.tunlets[r.GetTunlet()]
	if newTunlet == nil {
		return nil, status.Errorf(codes.NotFound, "the package has no tunlet %q", r.GetTunlet())
	}
	i := &instance{}
	i.service = newServer(newTunlet, ServerOptions{Crashed: func(report string) {
		reason, _, _ := strings.Cut(report, "\n")
		i.ended.Store(&reason)
		p.crashed(r.GetTunlet(), report)
	}})
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	p.last++
	p.instances[p.last] = i
	p.resized(len(p.instances))
	return &attunev1.BeginTunletResponse{Instance: p.last}, nil
}

// EndTunlet forgets an instance, and waits a little for a call that runs.
func (p *packageServer) EndTunlet(ctx context.Context, r *attunev1.EndTunletRequest) (*attunev1.EndTunletResponse, error) {
	i := p.forget(r.GetInstance())
	if i == nil {
		return nil, status.Errorf(codes.NotFound, "there is no instance %d", r.GetInstance())
	}
	ctx, cancel := context.WithTimeout(ctx, endGrace)
	defer cancel()
	select {
	case i.service.turn <- struct{}{}: // for good
		return &attunev1.EndTunletResponse{}, nil
	case <-ctx.Done():
		return &attunev1.EndTunletResponse{Running: true}, nil
	}
}

// forget returns an instance that no call reaches any more; nil: there is none.
func (p *packageServer) forget(number uint64) *instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.instances[number]
	if i != nil {
		delete(p.instances, number)
		p.resized(len(p.instances))
	}
	return i
}

// cpuClock measures the CPU time of a goroutine, which keeps its thread meanwhile.
// What the goroutine has others do is not measured.
type cpuClock struct{ began unix.Timespec }

func startCPUClock() cpuClock {
	runtime.LockOSThread()
	var c cpuClock
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &c.began) // it is always there
	return c
}

// stop returns the CPU time since the start, and lets go of the thread.
func (c cpuClock) stop() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now)
	runtime.UnlockOSThread()
	return time.Duration(now.Nano() - c.began.Nano())
}
