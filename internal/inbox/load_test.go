package inbox_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/inbox"
)

// Sixty goroutines gather their own requests while four read whatever is left over: nothing is lost, nothing comes twice
// (R07).
func TestManyWaiters(t *testing.T) {
	const (
		gatherers, perGatherer = 60, 1000
		readers, plain         = 4, 40_000
		messages               = gatherers*perGatherer + plain
		batch                  = 50
	)
	type work struct {
		entry  *inbox.Entry[int]
		number int
	}
	b := inbox.New[int](messages)
	seen := make([]atomic.Int32, messages)
	requests := make(chan work, 256)
	send := func(number int) {
		e, err := b.Open(strconv.Itoa(number))
		if err != nil {
			t.Errorf("Open(%d): %v", number, err)
			return
		}
		requests <- work{e, number}
	}

	var deliverers, senders, readersDone sync.WaitGroup
	for range 4 {
		deliverers.Go(func() {
			for w := range requests {
				if !w.entry.Deliver(w.number) {
					t.Errorf("Deliver(%d) was refused", w.number)
				}
			}
		})
	}
	for range readers {
		readersDone.Go(func() {
			for {
				number, err := b.Next(context.Background())
				if errors.Is(err, inbox.ErrClosed) {
					return
				}
				seen[number].Add(1)
			}
		})
	}
	for i := range gatherers {
		senders.Go(func() {
			for first := i * perGatherer; first < (i+1)*perGatherer; first += batch {
				g, err := b.Await(nil)
				if err != nil {
					t.Errorf("Await: %v", err)
					return
				}
				for number := first; number < first+batch; number++ {
					if err := g.Add(strconv.Itoa(number)); err != nil {
						t.Errorf("Add(%d): %v", number, err)
					}
					send(number)
				}
				for range batch {
					id, number, err := g.Next(context.Background())
					if err != nil || id != strconv.Itoa(number) || number < first || number >= first+batch {
						t.Errorf("Gather.Next = %q, %d, %v; want one of %d to %d", id, number, err, first, first+batch-1)
						return
					}
					seen[number].Add(1)
				}
				g.Release()
			}
		})
	}
	senders.Go(func() {
		for number := gatherers * perGatherer; number < messages; number++ {
			send(number)
		}
	})

	senders.Wait()
	close(requests)
	deliverers.Wait()
	b.Close()
	readersDone.Wait()
	for number := range seen {
		if n := seen[number].Load(); n != 1 {
			t.Fatalf("reply %d was seen %d times, want once", number, n)
		}
	}
	require.Zero(t, b.Len(), "Len at the end")
}

// cycle opens n requests, awaits half of them, answers all and claims all. It returns the time per request.
func cycle(t testing.TB, n int) time.Duration {
	b := inbox.New[int](n)
	ids := make([]string, n)
	entries := make([]*inbox.Entry[int], n)
	for i := range ids {
		ids[i] = strconv.Itoa(i)
	}
	start := time.Now()
	for i, id := range ids {
		e, err := b.Open(id)
		if err != nil {
			t.Fatal(err)
		}
		entries[i] = e
	}
	for i := range n / 4 {
		entries[i].Deliver(i)
	}
	g, err := b.Await(ids[:n/2])
	if err != nil {
		t.Fatal(err)
	}
	for i := n / 4; i < n; i++ {
		entries[i].Deliver(i)
	}
	for range n / 4 {
		if _, _, err := g.Next(ended); err != nil {
			t.Fatal(err)
		}
	}
	g.Release()
	for range n - n/4 {
		if _, err := b.Next(ended); err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(start) / time.Duration(n)
}

// A hundred thousand open requests cost about as much each as a thousand do (R17). A linear search anywhere would be a
// hundred times dearer in each round; the bar of ten leaves room for cold caches, the rounds for a busy machine.
func TestCostIsFlat(t *testing.T) {
	const rounds = 10
	var ratios []float64
	for range rounds {
		var few time.Duration
		for range 100 {
			few += cycle(t, 1000)
		}
		ratio := 100 * float64(cycle(t, 100_000)) / float64(few)
		if ratio < 10 {
			return
		}
		ratios = append(ratios, ratio)
	}
	t.Fatalf("a request among 100 000 takes %.1f times as long as one among 1000, want less than 10 once", ratios)
}

func BenchmarkCycle(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				cycle(b, n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/request")
		})
	}
}

// BenchmarkReply compares a reply that passes through the box with one over a channel.
func BenchmarkReply(b *testing.B) {
	b.Run("box", func(b *testing.B) {
		b.ReportAllocs()
		box := inbox.New[int](10)
		for b.Loop() {
			e, _ := box.Open("id")
			e.Deliver(1)
			_, _ = box.Next(ended)
		}
	})
	b.Run("channel", func(b *testing.B) {
		b.ReportAllocs()
		c := make(chan int, 1)
		for b.Loop() {
			c <- 1
			<-c
		}
	})
}
