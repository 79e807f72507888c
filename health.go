package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/workerlink/supervisor/internal/task"
)

// healthy is the hook of objects that know whether they are well. It is called
// beside the requests, not between them, so that a long one is no illness.
type healthy interface {
	Health(ctx context.Context) error
}

// healthWait is how long Healthy waits for the children's own word.
const healthWait = time.Second

// Healthy returns nil if every child is started, is up or coming back, and is
// well by its own word: that of its Health(ctx) error hook, or of the children of a
// supervisor below. Otherwise it says what is wrong with which. A word that is not
// given within a second is no good one.
func (s *Supervisor) Healthy() error {
	if _, err := s.current(); err != nil {
		return err
	}
	children := s.children()
	errs := make([]error, len(children))
	tasks := make([]*task.Task, len(children))
	for i, sl := range children {
		tasks[i] = task.Go(func(context.Context) { errs[i] = sl.healthy() })
	}
	for _, t := range tasks {
		t.Wait()
	}
	return errors.Join(errs...)
}

func (s *slot) healthy() error {
	s.mu.Lock()
	state, life, err := s.state, s.life, s.err
	s.mu.Unlock()
	child := fmt.Sprintf("child %d%s", s.id, quoted(s.cfg.name))
	switch state {
	case StateEnded, StateIdle:
		return &whereError{child + " has ended", orErr(err, ErrClosed)}
	case StateUp:
		if err := life.health(s.child); err != nil {
			return &whereError{child + " is not well", err}
		}
	}
	return nil
}

// health is the word of a life on itself; nil if it has none.
func (l *Life) health(child Child) error {
	if b, ok := child.(*branch); ok {
		return b.sup.Healthy()
	}
	link, ok := l.link.(inspected)
	if !ok {
		return nil
	}
	word := make(chan error, 1)
	question := l.ask(link, func(err error) { word <- err })
	limit := time.NewTimer(healthWait)
	defer limit.Stop()
	select {
	case err := <-word:
		return err
	case <-limit.C:
		l.forget(question)
		return fmt.Errorf("%w: no sign of life for %v", ErrTimeout, healthWait)
	}
}
