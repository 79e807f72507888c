package inbox_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/workerlink/supervisor/internal/inbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ended is a context that lets a call look without waiting.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

func open(t testing.TB, b *inbox.Box[string], id string) *inbox.Entry[string] {
	t.Helper()
	e, err := b.Open(id)
	require.NoError(t, err, "Open(%q)", id)
	return e
}

// arrive opens ids and delivers their replies in this order; the reply of "a" is "a!".
func arrive(t testing.TB, b *inbox.Box[string], ids ...string) {
	t.Helper()
	for _, id := range ids {
		require.True(t, open(t, b, id).Deliver(id+"!"), "Deliver(%q)", id)
	}
}

// drain claims what the box has and requires that to be want, in order.
func drain(t testing.TB, b *inbox.Box[string], want ...string) {
	t.Helper()
	for _, w := range want {
		got, err := b.Next(ended)
		require.NoError(t, err, "Next where %q is expected", w)
		require.Equal(t, w, got, "Next")
	}
	_, err := b.Next(ended)
	require.ErrorIs(t, err, context.Canceled, "Next of an empty box")
}

func TestNextKeepsArrivalOrder(t *testing.T) {
	b := inbox.New[string](10)
	x, y, z := open(t, b, "x"), open(t, b, "y"), open(t, b, "z")
	z.Deliver("third opened, first to arrive")
	x.Deliver("second")
	y.Deliver("third")
	drain(t, b, "third opened, first to arrive", "second", "third")
}

func TestOpenRefuses(t *testing.T) {
	b := inbox.New[string](2)
	e := open(t, b, "a")
	refuse := func(id string, want error) {
		t.Helper()
		_, err := b.Open(id)
		require.ErrorIs(t, err, want, "Open(%q)", id)
	}
	refuse("a", inbox.ErrDuplicate)
	open(t, b, "b")
	refuse("c", inbox.ErrFull)
	e.Deliver("reply")
	refuse("a", inbox.ErrDuplicate) // unclaimed
	refuse("c", inbox.ErrFull)      // an unclaimed reply keeps its place
	drain(t, b, "reply")
	open(t, b, "a") // claimed: id and place are free
	b.Close()
	refuse("d", inbox.ErrClosed)

	_, err := b.Open("d")
	require.ErrorIs(t, err, inbox.ErrClosed, "Open after Close")
	require.Panics(t, func() { inbox.New[string](0) }, "New(0)")
}

func TestIDErrorNamesTheID(t *testing.T) {
	b := inbox.New[string](2)
	open(t, b, "a")
	_, err := b.Open("a")
	var id *inbox.IDError
	require.ErrorAs(t, err, &id, "error of a duplicate")
	require.Equal(t, "a", id.ID, "the id in it")
	require.EqualError(t, err, `supervisor: duplicate request id: "a"`)
}

func TestOneVerdict(t *testing.T) {
	b := inbox.New[string](2)
	e := open(t, b, "a")
	require.True(t, e.Deliver("first"), "the first Deliver")
	require.False(t, e.Deliver("second"), "the second Deliver")
	e.Drop()
	drain(t, b, "first")
	next := open(t, b, "a")
	require.False(t, e.Deliver("late"), "Deliver of an entry whose id was opened anew")
	e.Drop()
	require.True(t, next.Deliver("own"), "Deliver of the new entry")
	drain(t, b, "own")
}

func TestDropGivesThePlaceBack(t *testing.T) {
	b := inbox.New[string](1)
	e := open(t, b, "a")
	e.Drop()
	e.Drop()
	require.Zero(t, b.Len(), "Len after Drop")
	require.False(t, e.Deliver("late"), "Deliver after Drop")
	open(t, b, "a")
}

func TestStats(t *testing.T) {
	b := inbox.New[string](9)
	arrive(t, b, "a", "b")
	open(t, b, "c")
	g, err := b.Await([]string{"a"})
	require.NoError(t, err, "Await")
	require.NoError(t, g.Add("unsent"), "Add")
	require.Equal(t, inbox.Stats{Open: 1, Unclaimed: 2}, b.Stats(), "a gather changes no numbers")
	require.Equal(t, 3, b.Len(), "Len")
	_, _, err = g.Next(ended)
	require.NoError(t, err, "Gather.Next")
	require.Equal(t, inbox.Stats{Open: 1, Unclaimed: 1}, b.Stats(), "after a claim")
}

func TestNextWaits(t *testing.T) {
	type got struct {
		name  string
		value string
		err   error
	}
	wait := func(b *inbox.Box[string], ctx context.Context, name string, to chan<- got) {
		value, err := b.Next(ctx)
		to <- got{name, value, err}
	}
	t.Run("first come, first served", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := inbox.New[string](9)
			results := make(chan got, 3)
			for _, name := range []string{"first", "second", "third"} {
				go wait(b, t.Context(), name, results)
				synctest.Wait()
			}
			for _, name := range []string{"first", "second", "third"} {
				arrive(t, b, name)
				require.Equal(t, got{name, name + "!", nil}, <-results, "who got the reply")
			}
			require.Zero(t, b.Len(), "Len")
		})
	})
	t.Run("a waiter that left is passed over", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := inbox.New[string](9)
			results := make(chan got, 2)
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			go wait(b, short, "short", results)
			synctest.Wait()
			go wait(b, t.Context(), "long", results)
			require.Equal(t, got{"short", "", context.DeadlineExceeded}, <-results, "who came back first")
			synctest.Wait()
			arrive(t, b, "x")
			require.Equal(t, got{"long", "x!", nil}, <-results, "who got the reply")
		})
	})
	t.Run("close ends the waiting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := inbox.New[string](9)
			e := open(t, b, "open")
			results := make(chan got, 2)
			go wait(b, t.Context(), "w", results)
			go wait(b, t.Context(), "w", results)
			synctest.Wait()
			b.Close()
			b.Close()
			require.Equal(t, got{"w", "", inbox.ErrClosed}, <-results, "a blocked Next")
			require.Equal(t, got{"w", "", inbox.ErrClosed}, <-results, "another blocked Next")
			require.True(t, e.Deliver("verdict"), "Deliver after Close")
			value, err := b.Next(t.Context())
			require.NoError(t, err, "Next after Close with an unclaimed reply")
			require.Equal(t, "verdict", value, "the reply")
			_, err = b.Next(t.Context())
			require.ErrorIs(t, err, inbox.ErrClosed, "Next after the last reply")
		})
	})
}

func TestNothingIsLostWhenTheContextEnds(t *testing.T) {
	const rounds = 2000
	b := inbox.New[string](1)
	var got, kept int
	for range rounds {
		e := open(t, b, "a")
		ctx, cancel := context.WithCancel(context.Background())
		err := make(chan error, 1)
		go func() {
			_, e := b.Next(ctx)
			err <- e
		}()
		go cancel()
		e.Deliver("v")
		if <-err == nil {
			got++
		} else {
			kept++
			drain(t, b, "v")
		}
		require.Zero(t, b.Len(), "Len after the round")
		cancel()
	}
	require.Equal(t, rounds, got+kept, "replies that a waiter got, and that it left in the box")
}

func TestOwner(t *testing.T) {
	b := inbox.New[string](9)
	g := await(t, b)
	require.NoError(t, g.Add("a"), "Add")
	owned := func(want any, wantKnown bool, when string) {
		t.Helper()
		owner, known := b.Owner("a")
		require.Equal(t, want, owner, "owner %s", when)
		require.Equal(t, wantKnown, known, "whether the id is known %s", when)
	}
	owned(nil, false, "of an id that was not sent")
	e := b.Prepare("a", "me")
	owned(nil, false, "of an entry that is only prepared")
	require.False(t, e.Deliver("early"), "Deliver before Open")
	require.NoError(t, e.Open(), "Open of a prepared entry")
	owned("me", true, "of an open request")
	e.Drop()
	owned(nil, false, "after Drop")
	e = b.Prepare("a", "you")
	require.NoError(t, e.Open(), "Open of a prepared entry")
	e.Deliver("a!")
	owned(nil, true, "of an unclaimed reply")
	collect(t, g, inbox.ErrNone, "a")
	owned(nil, false, "after the claim")
	require.NoError(t, b.Prepare("a", nil).Open(), "Open without an owner")
	owned(nil, true, "of a request that nobody owns")
}
