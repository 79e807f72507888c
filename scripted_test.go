package supervisor_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
)

// scripted is a kind of child that was made elsewhere. Its lives end on command.
type scripted struct {
	begin func(ctx context.Context, n int) error // what the n-th start does, from 1 on; nil: nothing
	deaf  bool                                   // lives do not end when they are asked to, only when they are forced to

	mu    sync.Mutex
	lives []*scriptedLife
	n     int
}

// Start begins one life.
func (o *scripted) Start(ctx context.Context, life *supervisor.Life) (supervisor.Link, error) {
	o.mu.Lock()
	o.n++
	n := o.n
	o.mu.Unlock()
	if o.begin != nil {
		if err := o.begin(ctx, n); err != nil {
			return nil, err
		}
	}
	l := &scriptedLife{deaf: o.deaf, life: life, done: make(chan struct{})}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lives = append(o.lives, l)
	return l, nil
}

// starts is how many were tried.
func (o *scripted) starts() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n
}

// last is the latest life that came up.
func (o *scripted) last() *scriptedLife {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lives[len(o.lives)-1]
}

// scriptedLife answers nothing by itself.
type scriptedLife struct {
	deaf bool
	life *supervisor.Life
	done chan struct{} // closed by die, once

	mu       sync.Mutex
	requests []*supervisor.Request
	stops    int
	err      error
}

// Submit keeps the request.
func (l *scriptedLife) Submit(r *supervisor.Request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, r)
	return nil
}

// Stop ends the life, at once or when ctx ends.
func (l *scriptedLife) Stop(ctx context.Context) error {
	l.mu.Lock()
	l.stops++
	l.mu.Unlock()
	if l.deaf {
		select {
		case <-ctx.Done():
		case <-l.done:
		}
	}
	l.die(nil)
	return l.Wait()
}

// Wait waits for the end.
func (l *scriptedLife) Wait() error {
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// die ends the life; only the first end counts.
func (l *scriptedLife) die(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.done:
	default:
		l.err = err
		close(l.done)
	}
}

// answer answers the oldest request that it holds.
func (l *scriptedLife) answer(t testing.TB, value any) {
	t.Helper()
	l.mu.Lock()
	require.NotEmpty(t, l.requests, "requests of the life")
	r := l.requests[0]
	l.requests = l.requests[1:]
	l.mu.Unlock()
	require.True(t, l.life.Reply(r, value, nil), "the first reply to %s", r.Method)
	require.False(t, l.life.Reply(r, value, nil), "the second reply to %s", r.Method)
}

// withScripted returns a running supervisor of one such child, and its events.
func withScripted(t testing.TB, o *scripted, opts ...supervisor.ChildOption) (*supervisor.Supervisor, *events) {
	t.Helper()
	seen := &events{}
	sup := newSupervisor(t, supervisor.Goroutine, supervisor.WithEvents(seen.take))
	_, err := sup.RegisterChild(t.Context(), o, opts...)
	require.NoError(t, err, "RegisterChild")
	require.NoError(t, sup.StartLink(context.Background()), "StartLink")
	return sup, seen
}

// events keeps what WithEvents is told, of tests on a fake clock.
type events struct {
	mu  sync.Mutex
	all []supervisor.Event
}

func (e *events) take(event supervisor.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
}

// of returns those of a kind, so far.
func (e *events) of(kind supervisor.EventKind) []supervisor.Event {
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []supervisor.Event
	for _, event := range e.all {
		if event.Kind == kind {
			found = append(found, event)
		}
	}
	return found
}

// kinds returns the kinds of all, so far.
func (e *events) kinds() []string {
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []string
	for _, event := range e.all {
		found = append(found, event.Kind.String())
	}
	return found
}

// stateOf is the state of child 0.
func stateOf(sup *supervisor.Supervisor) supervisor.State {
	synctest.Wait()
	return sup.Snapshot().Children[0].State
}
