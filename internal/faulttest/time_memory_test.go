package faulttest_test

// What has finished leaves nothing behind: no timer, no entry of a map, neither here nor in a worker.

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
)

// timely is the object of children whose requests have an hour each.
type timely struct{ clerk }

var newTimely = supervisor.Define("faulttest.timely", func(context.Context) (*timely, error) { return &timely{}, nil })

// Look uses its context, which has a timer of its own.
func (o *timely) Look(ctx context.Context) bool {
	_, limited := ctx.Deadline()
	return limited
}

// Heap returns how many bytes are in use where the object lives.
func (o *timely) Heap() uint64 { return clerkHeap() }

func TestT04FinishedCallsLeaveNothing(t *testing.T) {
	const perCall = 32 // bytes that a call may leave; a timer or an entry of a map would be more
	calls := times(6_000, 1_000_000)
	for name, call := range map[string]func(ctx context.Context, sup *supervisor.Supervisor) (any, error){
		"Call whose ctx ends with it": func(ctx context.Context, sup *supervisor.Supervisor) (any, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			return supervisor.Call[bool](ctx, sup, 0, "Look")
		},
		"Call with the ctx of all": func(ctx context.Context, sup *supervisor.Supervisor) (any, error) {
			return supervisor.Call[bool](ctx, sup, 0, "Look")
		},
		"Go with the ctx of all": func(ctx context.Context, sup *supervisor.Supervisor) (any, error) {
			return supervisor.Go[bool](ctx, sup, 0, "Look").Result(ctx)
		},
		"Send and Recv with Timeout": func(ctx context.Context, sup *supervisor.Supervisor) (any, error) {
			p := supervisor.NewSendPayload(0, "Look")
			p.Timeout = time.Hour
			if err := sup.Send(ctx, p); err != nil {
				return nil, err
			}
			got, err := sup.Recv(ctx, supervisor.IdleTimeout(time.Hour))
			return got.Data, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachKind(t, func(t *testing.T, k childtest.Kind) {
				sup := started(t, k.Type, newTimely)
				ctx, cancel := context.WithTimeout(context.Background(), time.Hour) // that of all
				defer cancel()
				run := func(n int) (host, child uint64) {
					for range n {
						if got, err := call(ctx, sup); err != nil || got != true {
							t.Fatalf("call: %v, %v", got, err)
						}
					}
					child, err := supervisor.Call[uint64](ctx, sup, 0, "Heap")
					require.NoError(t, err, "Heap")
					return clerkHeap(), child
				}
				host, child := run(calls / 5)
				hostEnd, childEnd := run(calls - calls/5)
				limit := uint64(calls) * perCall
				require.Less(t, hostEnd, host+limit, "bytes in use in the host; after a fifth of the calls %d", host)
				require.Less(t, childEnd, child+limit, "bytes in use in the child; after a fifth of the calls %d", child)
				nothingLeft(t, sup)
				load := sup.Snapshot().Children[0].Load
				require.Zero(t, load, "what the child still has to do")
				shutdown(t, sup)
			})
		})
	}
}

// Who waits for ten minutes is woken once, at the end: nothing is polled, so nothing can pile up.
func TestC71LongRecv(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, sup *supervisor.Supervisor, reqs []supervisor.SendPayload) error{
		"Recv": func(ctx context.Context, sup *supervisor.Supervisor, _ []supervisor.SendPayload) error {
			_, err := sup.Recv(ctx)
			return err
		},
		"Recv with an IdleTimeout": func(_ context.Context, sup *supervisor.Supervisor, _ []supervisor.SendPayload) error {
			_, err := sup.Recv(context.Background(), supervisor.IdleTimeout(10*time.Minute))
			return err
		},
		"RecvAll": func(ctx context.Context, sup *supervisor.Supervisor, reqs []supervisor.SendPayload) error {
			_, err := sup.RecvAll(ctx, reqs)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sup := clerks(t, childtest.Goroutines(), 1)
				reqs := send(t, sup, supervisor.NewSendPayload(0, "Nap", 1, time.Hour))
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				result := make(chan error, 1)
				go func() { result <- wait(ctx, sup, reqs) }()
				synctest.Wait()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				<-time.After(10*time.Minute - time.Second) // a poll each tenth of a second would be six thousand
				runtime.ReadMemStats(&after)
				require.Less(t, after.Mallocs-before.Mallocs, uint64(1000), "allocations while it waits")
				require.LessOrEqual(t, after.StackInuse, before.StackInuse+64<<10, "bytes of stacks while it waits")
				select {
				case err := <-result:
					t.Fatalf("it has returned too early: %v", err)
				default:
				}
				require.ErrorIs(t, <-result, supervisor.ErrTimeout, "the end")
				<-time.After(time.Hour) // the handler does not listen
				shutdown(t, sup)
			})
		})
	}
}
