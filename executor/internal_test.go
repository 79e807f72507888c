// These look inside: arithmetic whose outcomes from outside are only times, and what a worker never writes.
package executor

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/proc"
	"github.com/workerlink/supervisor/internal/testkit"
)

func TestPace(t *testing.T) {
	for _, tt := range []struct {
		name string
		size int // before
		n    int // tasks of the chunk
		took time.Duration
		want int
	}{
		{"short tasks come twice as many", 4, 4, 100 * time.Microsecond, 8},
		{"but no more than fit", 4, 4, 700 * time.Microsecond, 5},
		{"nor than a chunk has", 1024, 1024, time.Microsecond, 1024},
		{"long tasks go alone", 1, 1, time.Second, 1},
		{"tasks that turn out long come fewer", 64, 64, 2 * time.Millisecond, 32},
		{"at most by a factor of four at once", 64, 64, time.Second, 16},
		{"a short chunk for want of tasks says nothing", 64, 2, 100 * time.Microsecond, 64},
		{"unless it was slow all the same", 64, 2, 4 * time.Millisecond, 1},
		{"no time at all", 1, 1, 0, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := pace{size: tt.size}
			p.tell(tt.n, tt.took)
			require.Equal(t, tt.want, p.size, "size after %d tasks in %v", tt.n, tt.took)
		})
	}
	p := pace{size: 100}
	p.stumble()
	require.Equal(t, 12, p.size, "size after a failure within a chunk")
	p.size = 1
	p.stumble()
	require.Equal(t, 1, p.size, "smallest size")
}

func TestDelay(t *testing.T) {
	for _, tt := range []struct {
		name    string
		backoff supervisor.Backoff
		n       int
		want    time.Duration
	}{
		{"the first one, by default", supervisor.Backoff{}, 1, 0},
		{"the second one, by default", supervisor.Backoff{}, 2, 100 * time.Millisecond},
		{"the fourth one, by default", supervisor.Backoff{}, 4, 400 * time.Millisecond},
		{"a late one, by default", supervisor.Backoff{}, 1000, 30 * time.Second},
		{"the first one", supervisor.Backoff{First: time.Second}, 1, time.Second},
		{"up to a limit", supervisor.Backoff{Min: time.Second, Max: 3 * time.Second}, 4, 3 * time.Second},
		{"with a limit below the default", supervisor.Backoff{Max: 10 * time.Millisecond}, 2, 10 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 50 {
				require.InDelta(t, tt.want, delay(tt.backoff, tt.n), float64(tt.want)*jitter, "delay %d", tt.n)
			}
		})
	}
}

func TestSamples(t *testing.T) {
	var s samples
	require.Zero(t, s.percentiles(), "of none")
	for i := range 2 * keptSamples {
		s.add(time.Duration(i + 1))
	}
	require.Equal(t, supervisor.Percentiles{P50: 384, P90: 487, P99: 510}, s.percentiles(), "of the last ones")
}

// forJournal is a function whose results stand in a journal.
var forJournal = Define("internal.journal", func(_ context.Context, s string) (string, error) { return s, nil })

func sharedJournal(t *testing.T) *journal {
	t.Helper()
	j, err := newJournal(true)
	require.NoError(t, err, "newJournal")
	t.Cleanup(func() { require.NoError(t, j.close(), "close") })
	return j
}

func TestJournal(t *testing.T) {
	if !proc.Supported {
		return
	}
	j := sharedJournal(t)
	f := forJournal.function
	for range 3 { // it is used again
		j.reset(maxChunk)
		require.True(t, j.revoke(1), "revoke a task that waits")
		require.False(t, j.begin(1), "begin it")
		pen, err := j.pen(f)
		require.NoError(t, err, "pen")
		large := strings.Repeat("x", 100_000)
		var written []int
		for i := range maxChunk {
			if !j.begin(i) {
				continue
			}
			require.False(t, j.revoke(i), "revoke a task that has begun")
			if !pen.put(i, large+fmt.Sprint(i)) {
				break
			}
			written = append(written, i)
		}
		require.Equal(t, []int{0, 2, 3, 4, 5}, written, "results that found room")
		eye := j.eye()
		for _, i := range written {
			require.Equal(t, done, j.state(i), "state of task %d", i)
			v, err := eye.result(i, f)
			require.NoError(t, err, "result %d", i)
			require.Equal(t, large+fmt.Sprint(i), v, "result %d", i)
		}
	}
}

// Whatever a dying worker has left in its journal, reading it is an error and no more.
func TestJournalThatCannotBeRead(t *testing.T) {
	if !proc.Supported {
		return
	}
	for name, spoil := range map[string]func(record []byte){
		"a length beyond the end": func(b []byte) { binary.LittleEndian.PutUint32(b, 1<<31) },
		"a stream of the future":  func(b []byte) { binary.LittleEndian.PutUint16(b[4:], 77) },
		"an unknown tag":          func(b []byte) { b[recordHead] = 0xff },
		"a length too short":      func(b []byte) { binary.LittleEndian.PutUint32(b, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			j := sharedJournal(t)
			f := forJournal.function
			pen, err := j.pen(f)
			require.NoError(t, err, "pen")
			require.True(t, pen.put(0, "first"), "put")
			require.True(t, pen.put(1, "second"), "put")
			spoil(j.memory.Bytes(resultsBegin))
			eye := j.eye()
			_, err = eye.result(0, f)
			require.Error(t, err, "the spoilt result")
			_, _ = eye.result(1, f) // what follows may be readable, or not
		})
	}
}

// scribbled is the journal that the task scribble spoils.
var scribbled struct {
	sync.Mutex
	lane *lane
}

var scribble = Define("test.scribble", func(_ context.Context, n int) (int, error) {
	if n == 0 {
		scribbled.Lock()
		defer scribbled.Unlock()
		scribbled.lane.journal.words[2].Store(9)
	}
	return n, nil
})

// A word in the journal that no worker of ours writes is an offence against the protocol: its task has that verdict, and
// the worker goes.
func TestOddWordInAJournal(t *testing.T) {
	x, err := New(Options{MaxWorkers: 1, MinIdle: 1, Workers: []supervisor.ChildOption{supervisor.WithType(supervisor.Goroutine)}})
	require.NoError(t, err, "New")
	testkit.Until(t, "a worker is idle", func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		if len(x.state.crew.idle) == 0 {
			return false
		}
		scribbled.lane = x.state.crew.idle[0]
		return true
	})
	for item := range Map(t.Context(), x, scribble, slices.Values([]int{0, 1, 2, 3}), Chunk(4)) {
		if item.Index == 2 {
			require.ErrorIs(t, item.Err, supervisor.ErrProtocol, "item 2")
		} else if item.Err != nil {
			require.ErrorIs(t, item.Err, supervisor.ErrProtocol, "item %d", item.Index)
		}
	}
	require.NoError(t, x.Shutdown(t.Context()), "Shutdown")
	require.EqualValues(t, 1, x.Stats().Workers.Crashed, "workers that had to go")
}

// A worker that is idle takes what is queued although another one is starting, which may take long.
func TestIdleWorkerBesideOneThatStarts(t *testing.T) {
	x, err := New(Options{MaxWorkers: 2, IdleTimeout: -1, Workers: []supervisor.ChildOption{supervisor.WithType(supervisor.Goroutine)}})
	require.NoError(t, err, "New")
	ask := func() {
		t.Helper()
		f, err := scribble.Submit(t.Context(), x, 1)
		require.NoError(t, err, "Submit")
		v, err := f.Result(testkit.Context(t))
		require.NoError(t, err, "Result")
		require.Equal(t, 1, v, "value")
	}
	ask()
	pretend := func(n int) { // that one is starting
		x.mu.Lock()
		defer x.mu.Unlock()
		x.state.crew.coming += n
		x.state.crew.starting += n
	}
	testkit.Until(t, "the worker is idle", func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return len(x.state.crew.idle) == 1
	})
	pretend(1)
	ask()
	pretend(-1)
	require.NoError(t, x.Shutdown(t.Context()), "Shutdown")
}
