package inbox_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/inbox"
)

func await(t testing.TB, b *inbox.Box[string], ids ...string) *inbox.Gather[string] {
	t.Helper()
	g, err := b.Await(ids)
	require.NoError(t, err, "Await(%q)", ids)
	return g
}

// collect claims what the gather has and requires that to be the replies of ids, in order, and then the error.
func collect(t testing.TB, g *inbox.Gather[string], then error, ids ...string) {
	t.Helper()
	for _, want := range ids {
		id, v, err := g.Next(ended)
		require.NoError(t, err, "Gather.Next where %q is expected", want)
		require.Equal(t, [2]string{want, want + "!"}, [2]string{id, v}, "id and reply of Gather.Next")
	}
	_, _, err := g.Next(ended)
	require.ErrorIs(t, err, then, "Gather.Next after %q", ids)
}

func TestGatherTakesItsOwn(t *testing.T) {
	b := inbox.New[string](9)
	arrive(t, b, "a1", "b1", "a2")
	b2 := open(t, b, "b2")
	g := await(t, b, "b2", "b1", "b1")
	collect(t, g, context.Canceled, "b1")
	require.Equal(t, []string{"b2"}, g.Pending(), "Pending")
	b2.Deliver("b2!")
	drain(t, b, "a1!", "a2!")
	collect(t, g, inbox.ErrNone, "b2")
	g.Release()
	require.Zero(t, b.Len(), "Len")
}

func TestAwaitRefuses(t *testing.T) {
	b := inbox.New[string](9)
	arrive(t, b, "a")
	open(t, b, "b")
	mine := await(t, b, "b")
	for _, tt := range []struct {
		name string
		ids  []string
		bad  string
		err  error
	}{
		{"never opened", []string{"a", "nobody"}, "nobody", inbox.ErrUnknown},
		{"awaited elsewhere", []string{"a", "b"}, "b", inbox.ErrAwaited},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := b.Await(tt.ids)
			require.ErrorIs(t, err, tt.err)
			var id *inbox.IDError
			require.ErrorAs(t, err, &id)
			require.Equal(t, tt.bad, id.ID, "the id in the error")
		})
	}
	drain(t, b, "a!") // the refused gathers have claimed nothing
	_, err := b.Await([]string{"a"})
	require.ErrorIs(t, err, inbox.ErrUnknown, "Await of an id whose reply was claimed")
	mine.Release()
	await(t, b, "b").Release() // free again
}

func TestEmptyGather(t *testing.T) {
	b := inbox.New[string](9)
	g := await(t, b)
	collect(t, g, inbox.ErrNone)
	require.Empty(t, g.Pending(), "Pending")
}

func TestReleaseRestoresArrivalOrder(t *testing.T) {
	b := inbox.New[string](9)
	arrive(t, b, "1", "2")
	three := open(t, b, "3")
	five := open(t, b, "5")
	late := open(t, b, "late")
	g := await(t, b, "late", "5", "3", "2")
	three.Deliver("3!")
	arrive(t, b, "4")
	five.Deliver("5!")
	arrive(t, b, "6")
	g.Release()
	g.Release()
	late.Deliver("late!")
	drain(t, b, "1!", "2!", "3!", "4!", "5!", "6!", "late!")
	collect(t, g, inbox.ErrClosed)
	require.ErrorIs(t, g.Add("x"), inbox.ErrClosed, "Add after Release")
	require.False(t, g.Forget("x"), "Forget after Release")
}

func TestReleaseServesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inbox.New[string](9)
		arrive(t, b, "a", "b")
		g := await(t, b, "a", "b")
		got := make(chan string, 2)
		for range 2 {
			go func() {
				v, _ := b.Next(t.Context())
				got <- v
			}()
		}
		synctest.Wait()
		g.Release()
		require.ElementsMatch(t, []string{"a!", "b!"}, []string{<-got, <-got}, "what the blocked calls got")
	})
}

func TestUnsent(t *testing.T) {
	b := inbox.New[string](1)
	g := await(t, b)
	require.NoError(t, g.Add("x", "y", "x"), "Add")
	require.NoError(t, g.Add("x"), "Add of what is awaited already")
	require.Equal(t, []string{"x", "y"}, g.Unsent(), "Unsent")
	require.Zero(t, b.Len(), "an unsent id takes no place")

	_, err := b.Await([]string{"x"})
	require.ErrorIs(t, err, inbox.ErrAwaited, "Await of another's unsent id")
	other := await(t, b)
	require.ErrorIs(t, other.Add("z", "x"), inbox.ErrAwaited, "Add of another's unsent id")
	collect(t, other, inbox.ErrNone)

	x := open(t, b, "x")
	require.Equal(t, []string{"y"}, g.Unsent(), "Unsent after Open")
	require.Equal(t, []string{"x", "y"}, g.Pending(), "Pending after Open")
	x.Drop()
	require.Equal(t, []string{"x", "y"}, g.Unsent(), "Unsent after Drop")
	require.Zero(t, b.Len(), "Len after Drop")

	again := open(t, b, "x")
	require.False(t, x.Deliver("stale"), "Deliver of the dropped entry")
	require.True(t, again.Deliver("x!"), "Deliver of the new one")
	collect(t, g, inbox.ErrDropped, "x") // said once, after what has arrived
	collect(t, g, context.Canceled)

	g.Release()
	y := open(t, b, "y") // no gather has it any more
	y.Deliver("y!")
	drain(t, b, "y!")
}

func TestAddTakesArrivedReplies(t *testing.T) {
	b := inbox.New[string](9)
	arrive(t, b, "a", "b")
	g := await(t, b)
	require.NoError(t, g.Add("b"), "Add of an unclaimed reply")
	drain(t, b, "a!")
	collect(t, g, inbox.ErrNone, "b")
}

func TestForget(t *testing.T) {
	b := inbox.New[string](3)
	openID, arrived := open(t, b, "open"), open(t, b, "arrived")
	open(t, b, "foreign")
	g := await(t, b, "open", "arrived")
	require.NoError(t, g.Add("unsent"), "Add")
	arrived.Deliver("arrived!")

	require.True(t, g.Forget("open"), "Forget of an open request")
	require.False(t, g.Forget("open"), "Forget once more")
	require.True(t, g.Forget("unsent"), "Forget of an unsent id")
	require.False(t, g.Forget("arrived"), "Forget of an arrived reply")
	require.False(t, g.Forget("foreign"), "Forget of what the gather does not await")
	require.False(t, g.Forget("nobody"), "Forget of an unknown id")
	require.False(t, openID.Deliver("late"), "the late reply")
	require.Equal(t, inbox.Stats{Open: 1, Unclaimed: 1}, b.Stats(), "Stats")
	collect(t, g, inbox.ErrNone, "arrived")
	open(t, b, "open") // its id is free
}

func TestGatherNextWaits(t *testing.T) {
	next := func(ctx context.Context, g *inbox.Gather[string]) <-chan error {
		result := make(chan error, 1)
		go func() {
			_, _, err := g.Next(ctx)
			result <- err
		}()
		synctest.Wait()
		return result
	}
	for _, tt := range []struct {
		name string
		end  func(b *inbox.Box[string], e *inbox.Entry[string], g *inbox.Gather[string])
		want error
	}{
		{"reply", func(_ *inbox.Box[string], e *inbox.Entry[string], _ *inbox.Gather[string]) { e.Deliver("v") }, nil},
		{"close", func(b *inbox.Box[string], _ *inbox.Entry[string], _ *inbox.Gather[string]) { b.Close() }, inbox.ErrClosed},
		{"release", func(_ *inbox.Box[string], _ *inbox.Entry[string], g *inbox.Gather[string]) { g.Release() }, inbox.ErrClosed},
		{"forget", func(_ *inbox.Box[string], _ *inbox.Entry[string], g *inbox.Gather[string]) { g.Forget("a") }, inbox.ErrNone},
		{"deadline", func(*inbox.Box[string], *inbox.Entry[string], *inbox.Gather[string]) {}, context.DeadlineExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := inbox.New[string](1)
				e := open(t, b, "a")
				g := await(t, b, "a")
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				result := next(ctx, g)
				tt.end(b, e, g)
				require.ErrorIs(t, <-result, tt.want, "a blocked Next")
			})
		})
	}
	t.Run("two callers, one reply", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := inbox.New[string](1)
			e := open(t, b, "a")
			g := await(t, b, "a")
			first, second := next(t.Context(), g), next(t.Context(), g)
			e.Deliver("v")
			require.NoError(t, <-first, "who waited longer")
			require.ErrorIs(t, <-second, inbox.ErrNone, "who waited for what cannot come")
		})
	})
	t.Run("arrived replies outlive Close", func(t *testing.T) {
		b := inbox.New[string](9)
		arrive(t, b, "a")
		open(t, b, "b")
		g := await(t, b, "a", "b")
		b.Close()
		collect(t, g, inbox.ErrClosed, "a")
		require.Equal(t, []string{"b"}, g.Pending(), "Pending after Close")
	})
}

// One reply that a Recv and a RecvAll want at the same time: exactly one of them gets it (R13).
func TestReplyIsWantedTwice(t *testing.T) {
	const rounds = 2000
	b := inbox.New[string](1)
	var byNext, byGather int
	for range rounds {
		e := open(t, b, "a")
		ctx, cancel := context.WithCancel(context.Background())
		var nextErr, gatherErr error
		var callers sync.WaitGroup
		callers.Go(func() {
			defer cancel()
			g, err := b.Await([]string{"a"})
			if err != nil {
				gatherErr = err
				return
			}
			defer g.Release()
			_, _, gatherErr = g.Next(context.Background())
		})
		callers.Go(func() { _, nextErr = b.Next(ctx) })
		callers.Go(func() { e.Deliver("v") })
		callers.Wait()
		switch {
		case nextErr == nil && errors.Is(gatherErr, inbox.ErrUnknown):
			byNext++
		case gatherErr == nil && errors.Is(nextErr, context.Canceled):
			byGather++
		default:
			t.Fatalf("Next returned %v and the gather %v: not exactly one of them got the reply", nextErr, gatherErr)
		}
		require.Zero(t, b.Len(), "Len after the round")
	}
	require.Equal(t, rounds, byNext+byGather, "rounds with one winner")
}

// Whoever waits for the verdict of a request that was not accepted after all has to be told, or it waits for ever.
func TestDropWakesTheGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inbox.New[string](9)
		x := open(t, b, "x")
		g := await(t, b, "x")
		told := make(chan error, 1)
		go func() {
			_, _, err := g.Next(context.Background())
			told <- err
		}()
		synctest.Wait()
		x.Drop()
		require.ErrorIs(t, <-told, inbox.ErrDropped, "Next of a gather whose request was dropped")
		require.Equal(t, []string{"x"}, g.Unsent(), "Unsent")
		require.True(t, g.Forget("x"), "Forget")
		collect(t, g, inbox.ErrNone)
	})
}

// What is sent while its sender's first attempt is being forgotten stays.
func TestForgetUnsent(t *testing.T) {
	b := inbox.New[string](3)
	x := open(t, b, "x")
	g := await(t, b, "x")
	require.False(t, g.ForgetUnsent("x"), "ForgetUnsent of an open request")
	x.Drop()
	require.Equal(t, []string{"x"}, g.Unsent(), "Unsent after Drop")
	again := open(t, b, "x")
	require.False(t, g.ForgetUnsent("x"), "ForgetUnsent of one that was sent again")
	require.True(t, again.Deliver("x!"), "its reply")
	require.False(t, g.ForgetUnsent("x"), "ForgetUnsent of an arrived reply")
	collect(t, g, inbox.ErrNone, "x") // what was dropped is awaited no more, so nobody is told
	require.NoError(t, g.Add("y"), "Add")
	require.True(t, g.ForgetUnsent("y"), "ForgetUnsent of an unsent id")
	require.False(t, g.ForgetUnsent("y"), "ForgetUnsent once more")
	collect(t, g, inbox.ErrNone)
}

func TestQuiet(t *testing.T) {
	closed := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	b := inbox.New[string](3)
	require.True(t, closed(b.Quiet()), "with nothing open")
	one, two, three := open(t, b, "1"), open(t, b, "2"), open(t, b, "3")
	g := await(t, b, "3")
	quiet, same := b.Quiet(), b.Quiet()
	one.Deliver("1!")
	two.Drop()
	require.False(t, closed(quiet) || closed(same), "with one open")
	require.True(t, g.Forget("3"), "Forget")
	require.True(t, closed(quiet) && closed(same), "with none")
	require.False(t, three.Deliver("late"), "a late reply")
	open(t, b, "4")
	require.False(t, closed(b.Quiet()), "with another one")
}
