package supervisor

// The event queue is tested from inside: from outside its limit is met only by a flood.

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// slowSink takes events one at a time, when the test says so.
type slowSink struct {
	next chan struct{}
	seen []Event
}

func (s *slowSink) take(e Event) {
	<-s.next
	s.seen = append(s.seen, e)
}

func (s *slowSink) let(n int) {
	for range n {
		s.next <- struct{}{}
	}
	synctest.Wait()
}

// numbers are the N of the events that were taken.
func (s *slowSink) numbers() []int64 {
	var all []int64
	for _, e := range s.seen {
		all = append(all, e.N)
	}
	return all
}

func count(from, to int64) []int64 {
	var all []int64
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}

func emitAll(q *eventQueue, from, to int64) {
	for n := from; n <= to; n++ {
		q.emit(Event{Kind: EventOutput, N: n})
	}
	synctest.Wait()
}

// A listener that ends its goroutine, as one does that fails its test, hears of the rest all the same.
func TestEventQueueAfterGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []int64
		q := newEventQueue(&options{events: func(e Event) {
			if seen = append(seen, e.N); e.N == 1 {
				runtime.Goexit()
			}
		}})
		for n := range int64(4) {
			q.emit(Event{Kind: EventOutput, N: n})
		}
		q.settle(time.Hour)
		require.Equal(t, count(0, 3), seen, "events before settle returned")
	})
}

func TestEventQueueLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &slowSink{next: make(chan struct{})}
		defer close(sink.next) // whatever else there is
		q := newEventQueue(&options{events: sink.take})
		emitAll(q, 0, 0) // is being taken, and does not wait any more
		emitAll(q, 1, eventQueueLimit)
		emitAll(q, eventQueueLimit+1, eventQueueLimit+7)
		sink.let(1 + eventQueueLimit + 1)
		require.Equal(t, count(0, eventQueueLimit), sink.numbers()[:eventQueueLimit+1], "events that were kept, in order")
		dropped := sink.seen[eventQueueLimit+1]
		require.Equal(t, []any{EventDropped, int64(7), -1}, []any{dropped.Kind, dropped.N, dropped.ProcID}, "the event about the others")
		require.False(t, dropped.Time.IsZero(), "it has a time")

		emitAll(q, 1, 3)
		sink.let(3)
		require.Equal(t, count(1, 3), sink.numbers()[eventQueueLimit+2:], "events after it")
	})
}

// The limit is of what waits, also while the function works on the first of many.
func TestEventQueueLimitHoldsInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &slowSink{next: make(chan struct{})}
		defer close(sink.next) // whatever else there is
		q := newEventQueue(&options{events: sink.take})
		emitAll(q, 0, 0)
		emitAll(q, 1, eventQueueLimit)
		sink.let(1) // and so event 1 is being taken, and one place is free
		emitAll(q, eventQueueLimit+1, 2*eventQueueLimit)
		sink.let(eventQueueLimit + 2)
		require.Equal(t, count(1, eventQueueLimit+1), sink.numbers()[1:eventQueueLimit+2], "events that were kept")
		dropped := sink.seen[eventQueueLimit+2]
		require.Equal(t, []any{EventDropped, int64(eventQueueLimit - 1)}, []any{dropped.Kind, dropped.N}, "the event about the others")
	})
}

func TestEventQueueSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &slowSink{next: make(chan struct{})}
		defer close(sink.next) // whatever else there is
		q := newEventQueue(&options{events: sink.take})
		began := time.Now()
		q.settle(time.Hour)
		require.Zero(t, time.Since(began), "settle without events")
		emitAll(q, 1, 2)
		q.settle(time.Minute)
		require.Equal(t, time.Minute, time.Since(began), "settle while the function does not return")
		time.AfterFunc(time.Second, func() { sink.next <- struct{}{}; sink.next <- struct{}{} })
		q.settle(time.Hour)
		require.Equal(t, time.Minute+time.Second, time.Since(began), "settle until all is handed over")
		require.Equal(t, count(1, 2), sink.numbers(), "events")
	})
}

func TestEventQueueStampsAndFansOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		q := newEventQueue(&options{events: func(e Event) { seen = append(seen, fmt.Sprint("function ", e.N)) }})
		q.take = func(take func(Event)) func(Event) {
			return func(e Event) {
				require.Equal(t, time.Now(), e.Time, "time of the event")
				take(e)
			}
		}(q.take)
		emitAll(q, 1, 2)
		require.Equal(t, []string{"function 1", "function 2"}, seen, "one at a time, in order")
		q.settle(time.Second)
		require.Nil(t, q.drain, "no goroutine while there is nothing to do")
	})
}

// Without a listener nothing is kept, and no goroutine is started.
func TestEventQueueWithoutListener(t *testing.T) {
	q := newEventQueue(&options{})
	for range 2 * eventQueueLimit {
		q.emit(Event{Kind: EventOutput})
	}
	require.Empty(t, q.queue, "events that wait")
	require.Zero(t, q.dropped, "events that were dropped")
	require.Nil(t, q.drain, "the goroutine")
}

func TestEventKindNames(t *testing.T) {
	seen := make(map[string]EventKind)
	for k := EventStarted; k <= EventDone; k++ {
		name := k.String()
		require.NotEmpty(t, name, "name of kind %d", int(k))
		require.NotContains(t, seen, name, "name of kind %d", int(k))
		seen[name] = k
	}
	require.Equal(t, "unknown", EventKind(0).String(), "name of the zero kind")
	require.Equal(t, "unknown", (EventDone + 1).String(), "name of a kind that is not there")
}
