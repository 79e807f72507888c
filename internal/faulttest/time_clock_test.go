package faulttest_test

// Clocks that are wrong, processors that are busy, handlers that do not listen.

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// clockWorker is the object of children that say what they know of the time.
type clockWorker struct{}

var newClockWorker = supervisor.Define("faulttest.clock", func(context.Context) (clockWorker, error) { return clockWorker{}, nil })

// Deadline returns when the handler's time is over, by the wall clock, and what is left of it.
func (clockWorker) Deadline(ctx context.Context) []int64 {
	at, _ := ctx.Deadline()
	return []int64{at.UnixNano(), int64(time.Until(at))}
}

// Year returns the year.
func (clockWorker) Year() int { return time.Now().Year() }

// Await waits for the end of its context.
func (clockWorker) Await(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// The host's clock is decades behind the worker's: a bubble of synctest has one of its own, which begins in the year 2000
// and stands still while pipes are read. No limit may know about it.
func TestT05WallClocksDiffer(t *testing.T) {
	for _, k := range childtest.Kinds() {
		if !k.Can.Process {
			continue
		}
		testkit.NoLeaks(t)
		synctest.Test(t, func(t *testing.T) {
			sup := started(t, k.Type, newClockWorker)
			require.Equal(t, 2000, time.Now().Year(), "the year of the host")
			year, err := supervisor.Call[int](t.Context(), sup, 0, "Year")
			require.NoError(t, err, "Year")
			require.Greater(t, year, 2020, "the year of the worker")

			const limit = 30 * time.Second
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			got, err := supervisor.Call[[]int64](ctx, sup, 0, "Deadline")
			require.NoError(t, err, "Call with a deadline of the host's clock")
			left := time.Duration(got[1])
			require.LessOrEqual(t, left, limit, "what is left for the handler")
			require.Greater(t, left, limit-testkit.Limit, "what is left for the handler")
			shutdown(t, sup)
		})
	}
}

// A deadline without a monotonic part, as one has that came from elsewhere, is as good as any.
func TestT05DeadlineWithoutMonotonicPart(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		sup := started(t, k.Type, newClockWorker)
		const limit = 100 * time.Millisecond
		began := time.Now()
		ctx, cancel := context.WithDeadline(context.Background(), began.Add(limit).Round(0))
		defer cancel()
		_, err := supervisor.Call[any](ctx, sup, 0, "Await")
		require.ErrorIs(t, err, supervisor.ErrTimeout, "Call")
		require.GreaterOrEqual(t, time.Since(began), limit-time.Millisecond, "time of the verdict")
		shutdown(t, sup)
	})
}

// The handler's deadline is the caller's, however long the request has waited for its turn.
func TestT08HandlersDeadline(t *testing.T) {
	const limit, near, tries = 10 * time.Second, 50 * time.Millisecond, 20
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		sup := started(t, k.Type, newClockWorker)
		for name, ask := range map[string]func() (want time.Time, got supervisor.RecvPayload, err error){
			"ctx of Do": func() (time.Time, supervisor.RecvPayload, error) {
				ctx, cancel := context.WithTimeout(context.Background(), limit)
				defer cancel()
				want, _ := ctx.Deadline()
				got, err := sup.Do(ctx, supervisor.NewSendPayload(0, "Deadline"))
				return want, got, err
			},
			"Timeout of Send": func() (time.Time, supervisor.RecvPayload, error) {
				p := supervisor.NewSendPayload(0, "Deadline")
				p.Timeout = limit
				want := time.Now().Add(limit)
				if err := sup.Send(context.Background(), p); err != nil {
					return want, supervisor.RecvPayload{}, err
				}
				got, err := sup.Recv(testkit.Context(t))
				return want, got, err
			},
			"behind another one": func() (time.Time, supervisor.RecvPayload, error) {
				first := supervisor.NewSendPayload(0, "Await")
				first.Timeout = 4 * near
				if err := sup.Send(context.Background(), first); err != nil {
					return time.Time{}, supervisor.RecvPayload{}, err
				}
				p := supervisor.NewSendPayload(0, "Deadline")
				p.Timeout = limit
				want := time.Now().Add(limit)
				got, err := sup.Do(context.Background(), p)
				_, _ = sup.Recv(testkit.Context(t)) // the first one timed out
				return want, got, err
			},
		} {
			off := []time.Duration{}
			for range tries { // the machine may be busy: one good try is enough
				want, p, err := ask()
				require.NoError(t, err, "%s", name)
				got, err := supervisor.Value[[]int64](p)
				require.NoError(t, err, "%s", name)
				off = append(off, time.Unix(0, got[0]).Sub(want))
				if off[len(off)-1].Abs() < near {
					break
				}
			}
			require.Less(t, off[len(off)-1].Abs(), near, "%s: by how much the handler's deadline is off, in each try: %v", name, off)
			require.Greater(t, slices.Min(off), -near, "%s: the handler's deadline is never earlier", name)
		}
		shutdown(t, sup)
	})
}

// A handler that does not listen keeps its child busy, and nobody else.
func TestT07DeafHandler(t *testing.T) {
	const limit = 50 * time.Millisecond
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.StartTwo(t, k)
		life := r.Child(t, r.ID).Incarnation
		for name, wait := range map[string]func() error{
			"Do": func() error {
				ctx, cancel := context.WithTimeout(r.Ctx, limit)
				defer cancel()
				_, err := r.Sup.Do(ctx, supervisor.NewSendPayload(r.ID, "HoldOn", "deaf"))
				return err
			},
			"Timeout": func() error {
				p := supervisor.NewSendPayload(r.ID, "HoldOn", "deaf")
				p.Timeout = limit
				_, err := r.Sup.Do(r.Ctx, p)
				return err
			},
			"RecvAll": func() error {
				p := r.Send(t, r.ID, "HoldOn", "deaf")
				ctx, cancel := context.WithTimeout(r.Ctx, limit)
				defer cancel()
				_, err := r.Sup.RecvAll(ctx, []supervisor.SendPayload{p})
				return err
			},
		} {
			began := time.Now()
			testkit.Within(t, 3*time.Second, func() { require.ErrorIs(t, wait(), supervisor.ErrTimeout, "%s", name) })
			require.GreaterOrEqual(t, time.Since(began), limit, "time of %s", name)
			r.Fine(t, r.Other)
			r.Gate.Next(t).Release(t, "too late")
			r.Fine(t, r.ID)
		}
		require.Equal(t, life, r.Child(t, r.ID).Incarnation, "the life after all")
		require.EqualValues(t, 3, r.Child(t, r.ID).Load.Late, "late replies")
		nothingLeft(t, r.Sup)
	})
}
