package supervisor_test

// Requests whose sender withdraws, or gives up, at an inconvenient moment. What is tested here was wrong once.

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// A gather and the Sends that it counts on may end by the same ctx: whoever is first, the gather must not wait for a
// verdict that nobody owes any more. In a bubble that would be a deadlock.
func TestRecvAllReturnsWhenItsSendsFail(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t, supervisor.Limits{Queue: 1})
		works(t, sup, "busy")
		for range 300 {
			ctx, cancel := context.WithCancel(t.Context())
			var reqs []supervisor.SendPayload
			var senders sync.WaitGroup
			for i := range 20 {
				p := supervisor.NewSendPayload(0, "Double", i)
				reqs = append(reqs, p)
				senders.Go(func() {
					if err := sup.Send(ctx, p); err != nil && !errors.Is(err, supervisor.ErrCanceled) {
						t.Errorf("Send whose ctx has ended: %v", err)
					}
				})
			}
			synctest.Wait() // all of them want room
			gathered := make(chan []supervisor.RecvPayload, 1)
			go func() {
				got, err := sup.RecvAll(ctx, reqs, supervisor.IgnoreErr())
				if err != nil {
					t.Errorf("RecvAll with IgnoreErr: %v", err)
				}
				gathered <- got
			}()
			synctest.Wait()
			cancel()
			got := <-gathered
			senders.Wait()
			require.Equal(t, idsOf(reqs), idsOf(got), "entries in request order")
			for _, p := range got {
				if !errors.Is(p.Err, supervisor.ErrNoSuchRequest) { // otherwise its Send had failed before
					require.ErrorIs(t, p.Err, supervisor.ErrCanceled, "entry of a request that found no room")
				}
			}
		}
		require.Equal(t, 1, sup.Snapshot().Open, "requests that are open")
		d.finish("busy")
		requireRecv(t, sup, "busy")
	})
}

// sending has somebody send a request, who then waits for room, or for the next life.
func sending(ctx context.Context, sup *supervisor.Supervisor, p supervisor.SendPayload) <-chan error {
	sent := make(chan error, 1)
	go func() { sent <- sup.Send(ctx, p) }()
	synctest.Wait()
	return sent
}

// Cancel gives the verdict. What then becomes of the Send, which still waits for room, must not give a second one.
func TestCancelWhileSendWaitsForRoom(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(d *desk, cancel context.CancelFunc)
	}{
		{"and room comes", func(d *desk, _ context.CancelFunc) { d.finish("busy", "next") }},
		{"and its ctx ends", func(_ *desk, cancel context.CancelFunc) { cancel() }},
		{"and its time is over", func(*desk, context.CancelFunc) { <-time.After(2 * time.Hour) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				sup, d := withDesk(t, supervisor.Limits{Queue: 1})
				works(t, sup, "busy")
				next := sending(t.Context(), sup, named("next", 0, "Work", "next"))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				p := named("withdrawn", 0, "Work", "withdrawn")
				p.Timeout = time.Hour
				sent := sending(ctx, sup, p)
				require.NoError(t, sup.Cancel(p.ReqID), "Cancel of a request that waits for room")
				got, err := sup.Recv(t.Context())
				require.ErrorIs(t, err, supervisor.ErrCanceled, "its verdict")
				require.Equal(t, p.ReqID, got.ReqID, "the request in the verdict")
				tt.end(d, cancel)
				require.NoError(t, <-sent, "Send of a request that has its verdict")
				if d.runs("next") == 0 {
					d.finish("busy", "next")
				}
				require.NoError(t, <-next, "Send of the one that waited before it")
				requireRecv(t, sup, "busy", "next")
				require.Zero(t, d.runs("withdrawn"), "executions of the withdrawn request")
				requireRoom(t, sup, d, 1)
			})
		})
	}
}

// A request can be found, and so withdrawn, as soon as Send has taken its place in the inbox. On a fake clock that is too
// short a moment.
func TestCancelOfWhatIsJustBeingSent(t *testing.T) {
	testkit.NoLeaks(t)
	ctx := testkit.Context(t)
	sup, _ := withDesk(t)
	for round := range 2000 {
		p := named(fmt.Sprint("hasty ", round), 0, "Double", round)
		sent := make(chan error, 1)
		go func() { sent <- sup.Send(ctx, p) }()
		for sup.Cancel(p.ReqID) != nil {
			runtime.Gosched()
		}
		require.NoError(t, testkit.Receive(t, sent, "the end of Send"), "Send of a request that has a verdict")
		got, err := sup.Recv(ctx, supervisor.IgnoreErr())
		require.NoError(t, err, "Recv in round %d", round)
		require.Equal(t, p.ReqID, got.ReqID, "the request with a verdict in round %d", round)
		if got.Err != nil {
			require.ErrorIs(t, got.Err, supervisor.ErrCanceled, "the verdict in round %d", round)
		}
	}
	s := sup.Snapshot()
	require.Zero(t, s.Open+s.Unclaimed, "what is left in the inbox")
	shutdown(t, sup)
}

// cancelsWhenAsked is a context that has ended, and that cancels a request in the moment when it says so.
type cancelsWhenAsked struct {
	context.Context
	cancel func()
}

func (c cancelsWhenAsked) Err() error {
	c.cancel()
	return context.Canceled
}

// Whatever ends a Send, a request that was withdrawn before has its verdict, and the Send is not a refusal as well.
func TestCancelOfWhatIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t)
		p := named("withdrawn", 0, "Double", 1)
		ctx := cancelsWhenAsked{t.Context(), func() { _ = sup.Cancel(p.ReqID) }}
		require.NoError(t, sup.Send(ctx, p), "Send of a request that has its verdict")
		_, err := sup.Recv(t.Context())
		require.ErrorIs(t, err, supervisor.ErrCanceled, "its verdict")
		s := sup.Snapshot()
		require.Zero(t, s.Open+s.Unclaimed, "what is left in the inbox")
		require.Zero(t, d.runs("withdrawn"), "executions")
		shutdown(t, sup)
	})
}

// Three things come at once: room, Cancel, and the end of Send's ctx. Either Send fails or there is one verdict.
func TestOneVerdictOnTheWay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t, supervisor.Limits{Queue: 1})
		failed := 0
		for round := range 500 {
			busy := fmt.Sprint("busy ", round)
			works(t, sup, busy)
			ctx, cancel := context.WithCancel(t.Context())
			p := named(fmt.Sprint("contested ", round), 0, "Double", 1)
			sent := sending(ctx, sup, p)
			var all sync.WaitGroup
			all.Go(func() { _ = sup.Cancel(p.ReqID) }) // fails if Send has failed before
			all.Go(cancel)
			all.Go(func() { d.end(busy, deskEnd{}) })
			all.Wait()
			err := <-sent
			synctest.Wait()
			want := 2
			if err != nil {
				require.ErrorIs(t, err, supervisor.ErrCanceled, "Send")
				want, failed = 1, failed+1
			}
			var ids []string
			for len(ids) < want {
				got, err := sup.Recv(ended(), supervisor.IgnoreErr())
				require.NoError(t, err, "Recv of verdict %d of %d, after %v; Send returned %v", len(ids)+1, want, ids, err)
				ids = append(ids, got.ReqID)
			}
			requireRecv(t, sup) // and no more
		}
		t.Logf("Send failed in %d of 500 rounds", failed)
		requireRoom(t, sup, d, 1)
	})
}

// requireRoom checks that exactly n requests find room in child 0, which is idle.
func requireRoom(t testing.TB, sup *supervisor.Supervisor, d *desk, n int) {
	t.Helper()
	var names []string
	for i := range n {
		name := fmt.Sprintf("room %d of %d", i+1, n)
		names = append(names, name)
		require.NoError(t, sup.TrySend(named(name, 0, "Work", name)), "TrySend of %s", name)
	}
	p := named("no room", 0, "Work", "no room")
	requireRefused(t, sup.TrySend(p), supervisor.ErrBusy, p)
	d.finish(names...)
	requireRecv(t, sup, names...)
}

// Whatever was withdrawn while no life took requests has given its room back, and given it back once.
func TestRoomAfterWithdrawalsBetweenTwoLives(t *testing.T) {
	const queue = 3
	soon := func(t *testing.T) context.Context { return within(t, 5*time.Millisecond) }
	for _, tt := range []struct {
		name     string
		withdraw func(t *testing.T, sup *supervisor.Supervisor) error
		want     error
	}{
		{"the ctx of Go ends", func(t *testing.T, sup *supervisor.Supervisor) error {
			_, err := supervisor.Go[int](soon(t), sup, 0, "Double", 1).Result(t.Context())
			return err
		}, supervisor.ErrTimeout},
		{"the ctx of Call ends", func(t *testing.T, sup *supervisor.Supervisor) error {
			_, err := supervisor.Call[int](soon(t), sup, 0, "Double", 1)
			return err
		}, supervisor.ErrTimeout},
		{"the ctx of Send ends", func(t *testing.T, sup *supervisor.Supervisor) error {
			return sup.Send(soon(t), supervisor.NewSendPayload(0, "Double", 1))
		}, supervisor.ErrTimeout},
		{"the time of a request is over", func(t *testing.T, sup *supervisor.Supervisor) error {
			p := supervisor.NewSendPayload(0, "Double", 1)
			p.Timeout = 5 * time.Millisecond
			return sup.Send(t.Context(), p)
		}, supervisor.ErrTimeout},
		{"Cancel", func(t *testing.T, sup *supervisor.Supervisor) error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p := supervisor.NewSendPayload(0, "Double", 1)
			sent := sending(ctx, sup, p)
			if err := sup.Cancel(p.ReqID); err != nil {
				return err
			}
			_, err := sup.Recv(t.Context())
			cancel()
			return errors.Join(err, <-sent)
		}, supervisor.ErrCanceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				sup, d := withDesk(t, supervisor.Limits{Queue: queue})
				restarted := betweenLives(t, sup, d)
				for range 10 {
					require.ErrorIs(t, tt.withdraw(t, sup), tt.want, "a request between two lives")
				}
				d.end("deaf", deskEnd{})
				require.NoError(t, <-restarted, "Restart")
				synctest.Wait()
				requireRoom(t, sup, d, queue)
			})
		})
	}
}

// betweenLives begins a Restart that waits for the handler "deaf", so that nobody takes requests.
func betweenLives(t testing.TB, sup *supervisor.Supervisor, d *desk) (restarted <-chan error) {
	t.Helper()
	send(t, sup, named("deaf", 0, "Deaf", "deaf"))
	d.begun(t, "deaf")
	result := make(chan error, 1)
	go func() { result <- sup.Restart(context.Background(), 0) }()
	_, err := sup.Recv(t.Context())
	require.ErrorIs(t, err, supervisor.ErrRestarted, "verdict of what runs")
	synctest.Wait()
	p := supervisor.NewSendPayload(0, "Double", 1)
	requireRefused(t, sup.TrySend(p), supervisor.ErrBusy, p)
	return result
}

// Nobody wants it any more, so the next life must not get it: it has its verdict.
func TestCancelBetweenTwoLives(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t)
		restarted := betweenLives(t, sup, d)
		p := named("withdrawn", 0, "Work", "withdrawn")
		sent := sending(t.Context(), sup, p)
		require.NoError(t, sup.Cancel(p.ReqID), "Cancel of a request between two lives")
		d.end("deaf", deskEnd{})
		require.NoError(t, <-restarted, "Restart")
		require.NoError(t, <-sent, "Send of a request that has its verdict")
		_, err := sup.Recv(t.Context())
		require.ErrorIs(t, err, supervisor.ErrCanceled, "its verdict")
		n, err := supervisor.Call[int](t.Context(), sup, 0, "Double", 2)
		require.NoError(t, err, "Call of the next life")
		require.Equal(t, 4, n, "its result")
		require.Zero(t, d.runs("withdrawn"), "executions of the withdrawn request")
		requireRecv(t, sup)
	})
}

// Not even a Link that looks at no context gets it.
func TestCancelBetweenTwoOutsideLives(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := &scripted{}
		sup, _ := withScripted(t, o)
		requireDelays(t, sup, o, 0)
		o.last().die(errDied)
		require.Equal(t, supervisor.StateWaiting, stateOf(sup), "state after the second end")
		p := named("withdrawn", 0, "Anything")
		withdrawn := sending(t.Context(), sup, p)
		kept := sending(t.Context(), sup, named("kept", 0, "Anything"))
		require.NoError(t, sup.Cancel(p.ReqID), "Cancel of a request between two lives")
		require.NoError(t, <-withdrawn, "Send of a request that has its verdict")
		require.NoError(t, <-kept, "Send of another one")
		require.Len(t, o.last().requests, 1, "requests that the next life has got")
		o.last().answer(t, 1)
		requireRecv(t, sup, "withdrawn", "kept")
	})
}

// The time of a request may be over in the middle of its being handed over. On a fake clock it never is.
func TestNothingStaysInFlight(t *testing.T) {
	for name, do := range map[string]func(ctx context.Context, sup *supervisor.Supervisor, p supervisor.SendPayload) error{
		"Do": func(ctx context.Context, sup *supervisor.Supervisor, p supervisor.SendPayload) error {
			_, err := sup.Do(ctx, p)
			return err
		},
		"Do with a ctx": func(ctx context.Context, sup *supervisor.Supervisor, p supervisor.SendPayload) error {
			ctx, cancel := context.WithTimeout(ctx, p.Timeout)
			defer cancel()
			p.Timeout = 0
			_, err := sup.Do(ctx, p)
			return err
		},
		"Send": func(ctx context.Context, sup *supervisor.Supervisor, p supervisor.SendPayload) error {
			if err := sup.Send(ctx, p); err != nil {
				return err
			}
			_, err := sup.Recv(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.NoLeaks(t)
			ctx := testkit.Context(t)
			sup, _ := withDesk(t, supervisor.WithConcurrency(1<<20)) // so that Snapshot counts them all
			for i := range 5000 {
				p := supervisor.NewSendPayload(0, "Double", 1)
				p.Timeout = time.Duration(1+i%40) * time.Microsecond
				if err := do(ctx, sup, p); err != nil {
					require.ErrorIs(t, err, supervisor.ErrTimeout, "a request with %v", p.Timeout)
				}
			}
			var load supervisor.Load
			testkit.Until(t, "nothing is queued or in flight", func() bool {
				load = sup.Snapshot().Children[0].Load
				return load.Queued == 0 && load.InFlight == 0
			})
			s := sup.Snapshot()
			require.Zero(t, s.Open+s.Unclaimed, "what is left in the inbox")
			shutdown(t, sup)
		})
	}
}

// whimsical is a scripted child whose Submit does what the test says.
type whimsical struct {
	scripted
	submit func(l *whimsicalLife, r *supervisor.Request) error
}

// Start begins one life.
func (o *whimsical) Start(ctx context.Context, life *supervisor.Life) (supervisor.Link, error) {
	l, err := o.scripted.Start(ctx, life)
	if err != nil {
		return nil, err
	}
	return &whimsicalLife{l.(*scriptedLife), o.submit}, nil
}

type whimsicalLife struct {
	*scriptedLife
	submit func(l *whimsicalLife, r *supervisor.Request) error
}

// Submit is the test's.
func (l *whimsicalLife) Submit(r *supervisor.Request) error { return l.submit(l, r) }

// A Link made elsewhere may not keep its word: it refuses a request, and answers it all the same.
func TestReplyToRefusedRequest(t *testing.T) {
	errWhim := errors.New("whimsical: not today")
	inBubble(t, func(t *testing.T) {
		var refused []*supervisor.Request
		o := &whimsical{submit: func(l *whimsicalLife, r *supervisor.Request) error {
			switch r.Method {
			case "Refuse":
				refused = append(refused, r)
				return errWhim
			case "AnswerAndRefuse":
				refused = append(refused, r)
				l.life.Reply(r, "answer", nil)
				return errWhim
			default:
				return l.scriptedLife.Submit(r)
			}
		}}
		sup := newSupervisor(t, supervisor.Goroutine)
		_, err := sup.RegisterChild(t.Context(), o, supervisor.Limits{Queue: 2})
		require.NoError(t, err, "RegisterChild")
		require.NoError(t, sup.StartLink(t.Context()), "StartLink")
		for range 5 { // more often than there is room
			p := named("refused", 0, "Refuse")
			requireRefused(t, sup.TrySend(p), errWhim, p)
			require.NoError(t, sup.TrySend(named("answered", 0, "AnswerAndRefuse")), "TrySend of a request that was answered")
			requireRecv(t, sup, "answered")
		}
		require.NoError(t, sup.TrySend(named("first", 0, "Hold")), "TrySend with room for two")
		for _, r := range refused {
			require.False(t, o.last().life.Reply(r, "late", nil), "Reply to %s after Submit's error", r.Method)
		}
		require.NoError(t, sup.TrySend(named("second", 0, "Hold")), "TrySend with room for one")
		p := named("third", 0, "Hold")
		requireRefused(t, sup.TrySend(p), supervisor.ErrBusy, p)
		requireRecv(t, sup)
		o.last().answer(t, 1)
		o.last().answer(t, 2)
		requireRecv(t, sup, "first", "second")
	})
}

// newDeskOf returns the desk of a test, for children whose specs must be plain data.
var newDeskOf = supervisor.DefineWith("supervisor_test.newDeskOf", func(_ context.Context, test string) (*desk, error) {
	d, ok := desks.Load(test)
	if !ok {
		return nil, fmt.Errorf("no desk of %s", test)
	}
	return d.(*desk), nil
})

var desks sync.Map // by the name of the test

// The room of a request that timed out is not free before the child has let go of it, or a child that does not answer
// would be sent any number.
func TestTimedOutRequestsDoNotPileUp(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts []supervisor.ChildOption
	}{
		{"requests", []supervisor.ChildOption{supervisor.Limits{Queue: 4}}},
		{"bytes", []supervisor.ChildOption{supervisor.Limits{QueueBytes: 1000}, supervisor.WithCopy()}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				d := newDesk()
				sup := newSupervisor(t, supervisor.Goroutine)
				desks.Store(t.Name(), d)
				defer desks.Delete(t.Name())
				register(t, sup, newDeskOf.With(t.Name()), tt.opts...)
				require.NoError(t, sup.StartLink(t.Context()), "StartLink")
				send(t, sup, named("deaf", 0, "Deaf", "deaf"))
				d.begun(t, "deaf")
				accepted := 0
				for range 50 {
					_, err := supervisor.Call[any](within(t, time.Millisecond), sup, 0, "Refuse", strings.Repeat("x", 300))
					require.ErrorIs(t, err, supervisor.ErrTimeout, "Call behind a handler that does not return")
					var call *supervisor.CallError
					require.ErrorAs(t, err, &call, "Call")
					if !call.Unexecuted {
						accepted++
					}
				}
				require.Equal(t, 3, accepted, "requests that the child has taken, beside the one that runs")
				load := sup.Snapshot().Children[0].Load
				require.Equal(t, 4, load.Queued+load.InFlight, "requests that hold room")
				d.end("deaf", deskEnd{})
				n, err := supervisor.Call[int](t.Context(), sup, 0, "Double", 4)
				require.NoError(t, err, "Call when the child answers again")
				require.Equal(t, 8, n, "its result")
				load = sup.Snapshot().Children[0].Load
				require.Zero(t, load.Queued+load.InFlight, "requests that hold room in the end")
				requireRecv(t, sup, "deaf")
			})
		})
	}
}

// taker takes arguments and keeps none.
type taker struct{}

// Take returns how much it was given.
func (taker) Take(b []byte) int { return len(b) }

var newTaker = supervisor.Define("supervisor_test.taker", func(context.Context) (taker, error) { return taker{}, nil })

// Replies may lie in the inbox for long. What they answer need not.
func TestUnclaimedRepliesHoldNoArguments(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			testkit.NoLeaks(t)
			sup := started(t, kind, newTaker)
			const n = 8
			var freed atomic.Int64
			for range n {
				b := make([]byte, 100<<10)
				runtime.AddCleanup(&b[0], func(by int64) { freed.Add(by) }, 1)
				send(t, sup, supervisor.NewSendPayload(0, "Take", b))
			}
			_, err := supervisor.Call[int](testkit.Context(t), sup, 0, "Take", []byte(nil))
			require.NoError(t, err, "Call behind them")
			testkit.Until(t, "all are answered", func() bool { return sup.Snapshot().Unclaimed == n })
			testkit.Until(t, "the arguments of all are free", func() bool {
				runtime.GC()
				return freed.Load() == n
			})
			require.Equal(t, n, sup.Snapshot().Unclaimed, "replies that nobody has taken")
			shutdown(t, sup)
		})
	}
}

// The verdict of a withdrawn request does not come alone: the Send that still waits for room returns with it.
func TestCancelEndsAWaitingSend(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t, supervisor.Limits{Queue: 1})
		works(t, sup, "busy")
		p := named("waiting", 0, "Double", 1)
		sent := sending(t.Context(), sup, p)
		synctest.Wait()
		require.NoError(t, sup.Cancel(p.ReqID), "Cancel")
		require.NoError(t, <-sent, "Send of what was withdrawn while it waited: its reply is there")
		got, err := sup.Recv(ended(), supervisor.IgnoreErr())
		require.NoError(t, err, "Recv")
		require.Equal(t, p.ReqID, got.ReqID, "whose reply")
		require.ErrorIs(t, got.Err, supervisor.ErrCanceled, "its verdict")
		d.end("busy", deskEnd{})
		synctest.Wait()
		requireRecv(t, sup, "busy")
		requireRoom(t, sup, d, 1)
	})
}
