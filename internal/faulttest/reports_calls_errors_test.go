package faulttest_test

// Reports of calls whose error was hidden, or never came.

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// reportFlaky is the object of children of which some fail.
type reportFlaky struct{ id int }

var newReportFlaky = supervisor.DefineWith("faulttest.flaky", func(_ context.Context, id int) (*reportFlaky, error) {
	return &reportFlaky{id}, nil
})

// Step fails in children 2 and 5, by an error that says which.
func (o *reportFlaky) Step() (int, error) {
	if o.id == 2 || o.id == 5 {
		return 0, &childtest.CodeError{Code: o.id, Detail: "step"}
	}
	return 100 + o.id, nil
}

// Two of eight children fail. Both errors are reported, each with its child, and the others' values are what they are.
func TestC80ErrorsOfSome(t *testing.T) {
	const children = 8
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		sup := newSupervisor(t, k.Type)
		for id := range children {
			register(t, sup, newReportFlaky.With(id))
		}
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		ctx := testkit.Context(t)
		check := func(by string, id int, value any, err error) {
			t.Helper()
			if id != 2 && id != 5 {
				require.NoError(t, err, "%s: child %d", by, id)
				require.Equal(t, 100+id, value, "%s: value of child %d", by, id)
				return
			}
			e := childtest.CallErrorOf(t, err, id, "Step")
			var code *childtest.CodeError
			require.ErrorAs(t, e, &code, "%s: child %d", by, id)
			require.Equal(t, childtest.CodeError{Code: id, Detail: "step"}, *code, "%s: error of child %d", by, id)
		}
		results, err := supervisor.Broadcast[int](ctx, sup, "Step")
		require.Len(t, results, children, "results of Broadcast")
		for id, res := range results {
			require.Equal(t, id, res.ProcID, "child of result %d", id)
			check("Broadcast", id, res.Value, res.Err)
			if res.Err != nil {
				require.ErrorIs(t, err, res.Err, "the error of Broadcast has that of child %d", id)
				require.ErrorContains(t, err, fmt.Sprintf("child %d", id), "the error of Broadcast")
			}
		}
		var reqs []supervisor.SendPayload
		for id := range children {
			reqs = append(reqs, supervisor.NewSendPayload(id, "Step"))
		}
		got, err := sup.RecvAll(ctx, send(t, sup, reqs...), supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll with IgnoreErr")
		for id, p := range got {
			check("RecvAll", id, p.Data, p.Err)
			require.Equal(t, p.Err != nil, p.Data == nil, "entry %d has a value or an error", id)
		}
		send(t, sup, reqs...)
		for range children {
			p, err := sup.Recv(ctx)
			require.Equal(t, p.Err, err, "Recv's error is the payload's")
			check("Recv", p.ProcID, p.Data, err)
		}
		nothingLeft(t, sup)
		shutdown(t, sup)
	})
}

// reportGrump is the object of a child whose handlers panic.
type reportGrump struct{}

var newReportGrump = supervisor.Define("faulttest.grump", func(context.Context) (reportGrump, error) { return reportGrump{}, nil })

// Panic panics, at once or when a gate lets it go.
func (reportGrump) Panic(gate string) int {
	if gate != "" {
		_, _ = childtest.WaitAt(context.Background(), gate, "grump")
	}
	panic("that much for your request")
}

// Fine returns its argument.
func (reportGrump) Fine(n int) int { return n }

// A handler panics: its caller knows at once, and not only when its time is over. A panic that comes too late changes nothing.
func TestC110PanicAndDeadline(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		sup := started(t, k.Type, newReportGrump)
		life := sup.Snapshot().Children[0].Incarnation
		testkit.Within(t, 3*time.Second, func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			_, err := supervisor.Call[int](ctx, sup, 0, "Panic", "")
			var p *supervisor.PanicError
			require.ErrorAs(t, err, &p, "Call of a handler that panics")
			require.Equal(t, "that much for your request", p.Value, "its value")
			require.Contains(t, p.Stack, "reportGrump", "its stack")
			require.NotErrorIs(t, err, supervisor.ErrTimeout, "the verdict")
		})
		const limit = 50 * time.Millisecond
		gate := childtest.NewGate(t)
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		var p supervisor.RecvPayload
		var err error
		testkit.Within(t, 3*time.Second, func() { p, err = sup.Do(ctx, supervisor.NewSendPayload(0, "Panic", gate.Address)) })
		require.GreaterOrEqual(t, time.Since(began), limit, "time of the verdict")
		require.ErrorIs(t, err, supervisor.ErrTimeout, "Call of a handler that panics later")
		require.Equal(t, p.Err, err, "the payload's error")
		gate.Next(t).Release(t, "")
		n, err := supervisor.Call[int](testkit.Context(t), sup, 0, "Fine", 4)
		require.NoError(t, err, "the next call")
		require.Equal(t, 4, n, "its result")
		require.Equal(t, life, sup.Snapshot().Children[0].Incarnation, "the life after both")
		require.EqualValues(t, 1, sup.Snapshot().Children[0].Load.Late, "late replies")
		nothingLeft(t, sup)
		shutdown(t, sup)
	})
}
